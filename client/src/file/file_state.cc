// Life, rights and length of an open file.
#include "file/file_state.h"

#include <algorithm>

#include <fmt/format.h>

#include "file/async.h"
#include "pif/base/capability.h"
#include "pif/wire/convert.h"

namespace pif::client {

namespace {

constexpr Duration kRenewPatience = std::chrono::seconds(5);
constexpr std::uint64_t kSealBytesPerSecond = 4u << 20;  // slower than any disk: bounds the wait for a sync

}  // namespace

namespace {

// How a client renews a right: its server gives it a new one.
Result<access::Grant::Capability> renew_at_server(Session& session, FileId file, const std::string& path, bool held) {
  proto::Renew request;
  request.add_files(file.value);
  if (held) request.add_held(file.value);
  PIF_TRY_VALUE(const proto::RenewReply renewed,
                session.call(std::move(request), std::min(kRenewPatience, session.timeout())));
  if (renewed.capabilities_size() != 1 || renewed.capabilities(0).empty()) {
    return fail(Code::kStaleFile, fmt::format("{}: {}", path,
                                              held ? "nobody was kept from changing it any more: it may "
                                                     "have been written to, deleted or replaced since it was opened"
                                                   : "deleted or replaced since it was opened"));
  }
  return access::Grant::Capability{renewed.capabilities(0), session.clock().wall_seconds() + kCapabilitySeconds};
}

access::Grant::Renew renewal(Session& session, const FileParts& parts, bool adopted, const bool& held) {
  if (adopted) return {};
  return [&session, &held, file = parts.file, path = parts.path] { return renew_at_server(session, file, path, held); };
}

}  // namespace

FileState::FileState(std::shared_ptr<Session> session_of_file, FileParts parts_of_file, bool is_adopted)
    : session(std::move(session_of_file)),
      grant(parts_of_file, renewal(*session, parts_of_file, is_adopted, held)),
      parts(grant.parts()),
      phase(parts.creating ? Phase::kCreating : Phase::kOpen),
      adopted(is_adopted),
      file_length_known(parts.creating),
      file_length(parts.creating ? FileLength{} : parts.file_length),
      ports(parts.layout.width()),
      behind(*this),
      hellos_(session->hellos()) {}

FileState::~FileState() {
  operations.clear();
  if (phase == Phase::kEnded || adopted) return;
  // A destructor cannot report; the server also ends what a lost client had open.
  if (auto done = creating() ? abort() : close(); !done) phase = Phase::kEnded;
}

Status FileState::check_usable() const {
  if (phase != Phase::kEnded) return {};
  return fail(Code::kInvalid, fmt::format("{}: the file is closed", parts.path));
}

Status FileState::check_may_write() const {
  if (creating() || (parts.rights & kMayWrite) != 0) return {};
  return fail(Code::kPermission, fmt::format("{}: it is open for reading; open it for writing", parts.path));
}

Result<FileLength> FileState::length(bool fresh) {
  if (creating() || (file_length_known && (held || !fresh))) return file_length;
  net::Packet request;
  request.envelope.mutable_length()->set_file(parts.file.value);
  request.envelope.set_capability(grant.capability());
  auto reply = session->ask_node(parts.nodes[0], std::move(request));
  if (!reply && reply.error().code == Code::kBadCapability && !adopted) {
    PIF_TRY(grant.renew());
    net::Packet again;
    again.envelope.mutable_length()->set_file(parts.file.value);
    again.envelope.set_capability(grant.capability());
    reply = session->ask_node(parts.nodes[0], std::move(again));
  }
  if (reply) {
    file_length = wire::file_length_of(reply->envelope.length_reply().file_length());
    if (file_length.records < parts.file_length.records) {
      return fail(Code::kStaleNode,
                  fmt::format("{}: the directory knows of {} records, and the LFS that keeps the length of {}: it has "
                              "lost some; run pif fsck",
                              parts.path, parts.file_length.records, file_length.records),
                  parts.nodes[0].name());
    }
  } else if (reply.error().code == Code::kNotFound && parts.file_length.records == 0) {
    file_length = {};  // an empty file has no component
  } else {
    return fail(std::move(reply.error()));
  }
  file_length_known = true;
  return file_length;
}

Result<FileLength> FileState::length_for(std::uint64_t records) {
  const bool may_have_changed = records == file_length.records && ends_short();
  if (file_length_known && records <= file_length.records && !may_have_changed) return file_length;
  return length(true);
}

// ---- the end of writing ---------------------------------------------------------------------------------------------

Status FileState::end_writing() {
  PIF_TRY(flush_all_stages());
  return behind.run();
}

proto::Envelope FileState::seal_request(LfsIndex lfs, const component::Tail* tail) const {
  proto::Envelope request;
  proto::Seal& seal = *request.mutable_seal();
  *seal.mutable_shape() = parts.shape(lfs);
  *seal.mutable_file() = wire::proto_of(file_length);
  if (tail != nullptr) {
    seal.set_rows(tail->rows);
    seal.set_bytes(tail->bytes);
    seal.set_by_descriptor(true);
    seal.set_data_tail_sum(tail->data_sum);
    seal.set_index_tail_sum(tail->index_sum);
    return request;
  }
  seal.set_rows(ports[lfs].rows);
  std::uint64_t bytes = ports[lfs].bytes;
  if (parts.format.is_fixed()) {
    const std::uint32_t length = parts.format.record_length;
    bytes = ports[lfs].rows * length;
    const std::uint64_t missing = file_length.records * length - file_length.bytes;  // of a short last record
    if (file_length.records > 0 && parts.layout.locate(file_length.records - 1).lfs == lfs) bytes -= missing;
  }
  seal.set_bytes(bytes);
  return request;
}

// Ends writing to one component; after this it can only be sealed (again, if need be).
Status FileState::prepare_seal(LfsIndex lfs) {
  Port& port = ports[lfs];
  if (port.sealing) return {};
  if (port.writer) {
    PIF_TRY_VALUE(const component::Tail tail, port.writer->finish());
    port.sealing = std::make_shared<proto::Envelope>(seal_request(lfs, &tail));
  } else {
    port.sealing = std::make_shared<proto::Envelope>(seal_request(lfs, nullptr));
  }
  port.reader.reset();
  port.writer.reset();
  port.files = {};  // the LFS refuses while anybody could still write
  return {};
}

// Every LFS that got rows, all at once; and LFS 0 of a file that has any, since it is the one that knows the length.
Status FileState::add_seals(Requests& seals) {
  const auto sync_s = static_cast<std::int64_t>(file_length.bytes / kSealBytesPerSecond);
  for (LfsIndex lfs = 0; lfs < width(); ++lfs) {
    if (ports[lfs].rows == 0 && (lfs != 0 || file_length.records == 0)) continue;
    PIF_TRY(prepare_seal(lfs));
    BulkRequest request;
    request.lfs = lfs;
    request.make = [envelope = ports[lfs].sealing] {
      net::Packet packet;
      packet.envelope = *envelope;
      return packet;
    };
    request.timeout = session->timeout() + std::chrono::seconds(sync_s);
    seals.add(std::move(request));
  }
  return {};
}

Status FileState::seal_all() {
  Requests seals(*this);
  PIF_TRY(add_seals(seals));
  return seals.run();
}

// They go over one connection, on which an LFS takes rows before the seal that was sent after them.
Status FileState::start_sealing() {
  PIF_TRY(check_may_commit());
  PIF_TRY(flush_all_stages());
  if (!is_small) PIF_TRY(behind.run());
  PIF_TRY(add_seals(behind));
  return behind.step();
}

net::Packet FileState::commit_request(const FileLength& length) const {
  net::Packet request;
  proto::Commit& commit = *request.envelope.mutable_commit();
  commit.set_file(parts.file.value);
  *commit.mutable_file_length() = wire::proto_of(length);
  if (modified_ns) commit.set_modified(*modified_ns);
  return request;
}

// A commit that is asked for again answers Done if the file is committed.
Status FileState::commit_at_server(const FileLength& length) {
  PIF_TRY(session->change(commit_request(length), commit_change()));
  phase = Phase::kEnded;
  return {};
}

Status FileState::check_may_commit() {
  PIF_TRY(check_usable());
  if (!creating() || adopted)
    return fail(Code::kInvalid, fmt::format("{}: only a file being created is committed", parts.path));
  return keep_rights();
}

Status FileState::commit() {
  PIF_TRY(check_may_commit());
  PIF_TRY(end_writing());
  PIF_TRY(seal_all());
  return commit_at_server(file_length);
}

Status FileState::abort() {
  if (phase == Phase::kEnded) return {};
  if (!creating() || adopted)
    return fail(Code::kInvalid, fmt::format("{}: only a file being created is aborted", parts.path));
  phase = Phase::kEnded;
  operations.clear();
  behind.drop_all();
  for (Port& port : ports) {
    port.reader.reset();
    port.writer.reset();
    port.files = {};
  }
  net::Packet request;
  request.envelope.mutable_abort()->set_file(parts.file.value);
  PIF_TRY(session->ask_server(std::move(request), std::min(kRenewPatience, session->timeout())));
  return {};
}

Status FileState::close() {
  if (phase == Phase::kEnded) return {};
  if (creating() && !adopted) return abort();
  phase = Phase::kEnded;
  operations.clear();
  for (Port& port : ports) {
    port.reader.reset();
    port.files = {};
  }
  if (adopted) return {};
  net::Packet request;
  proto::Close& close = *request.envelope.mutable_close();
  close.add_files(parts.file.value);
  if (file_length_known && file_length != parts.file_length) {
    close.set_length_file(parts.file.value);
    *close.mutable_file_length() = wire::proto_of(file_length);
  }
  PIF_TRY(session->ask_server(std::move(request), std::min(kRenewPatience, session->timeout())));
  return {};
}

}  // namespace pif::client
