// Life and rights of an open file; what is written to it, of either kind.
#include "file/file_state.h"

#include <algorithm>

#include <fmt/format.h>

#include "pieces/async_operation.h"
#include "pif/access/row_copies.h"
#include "pif/base/assert.h"
#include "pif/base/capability.h"
#include "pif/base/limits.h"
#include "pif/parity/deputy.h"
#include "pif/wire/convert.h"
#include "pif/wire/views.h"
#include "session/member_watch.h"
#include "session/one_user.h"

namespace pif::client {

namespace {

constexpr Duration kRenewPatience = std::chrono::seconds(5);

// How a client renews a right: its server gives it a new one.
Result<access::Grant::Capability> renew_at_server(Session& session, FileId file, const std::string& path, bool held) {
  // Over ipc an LFS knows a client by its credential alone, which may have been signed by a key that was changed since.
  static_cast<void>(session.renew_credential(session.timeout()));
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

access::Grant::Renew renewal(Session& session, const FileParts& parts, const OpenKind& kind) {
  if (kind.adopted) return {};
  return [&session, held = kind.held, file = parts.file, path = parts.path] {
    return renew_at_server(session, file, path, held);
  };
}

// The server has said so just now.
void note_those_down(access::LfsLinks& links, std::span<const proto::NodeInfo> nodes) {
  constexpr std::uint32_t kDown = 3;
  constexpr std::uint32_t kStale = 5;
  for (const proto::NodeInfo& node : nodes) {
    if (node.state() == kDown || node.state() == kStale) links.note_said_down(node.id());
    if (node.state() == wire::kStateFailing) links.note_away(node.id());  // whatever it answers, it may take long
  }
}

DataPath path_for(DataPath wanted, bool is_small) {
  return is_small && wanted == DataPath::kAuto ? DataPath::kMessages : wanted;
}

std::vector<std::unique_ptr<access::ComponentAccess>> components_of(Session& session, const FileParts& parts,
                                                                    bool is_small) {
  const DataPath path = path_for(session.options().data_path, is_small);
  std::vector<std::unique_ptr<access::ComponentAccess>> components;
  for (LfsIndex lfs = 0; lfs < parts.layout.width(); ++lfs) {
    components.push_back(std::make_unique<access::ComponentAccess>(session.storage(), parts, lfs, path));
  }
  PIF_ASSERT(components.size() == parts.layout.width(), components.size(), parts.layout.width());
  return components;
}

}  // namespace

FileState::FileState(std::shared_ptr<Session> session_of_file, FileParts parts_of_file, const OpenKind& kind_of_file)
    : session(std::move(session_of_file)),
      grant(parts_of_file, renewal(*session, parts_of_file, kind_of_file)),
      parts(grant.parts()),
      kind(kind_of_file),
      phase(parts.creating ? Phase::kCreating : Phase::kOpen),
      components(components_of(*session, parts, kind.is_small)),
      length(*this),
      reader(*this),
      writer(*this),
      scattered(*this),
      overwriter(*this),
      appender(*this),
      placed(*this),
      tell_at_(session->clock().now() + kTellEvery),
      members_seen_(session->members() != nullptr ? session->members()->answers() : 0),
      hellos_(session->hellos()) {
  PIF_ASSERT(parts.nodes.size() == width(), parts.nodes.size(), width());
  PIF_ASSERT(!creating() || !kind.held, phase);
  note_those_down(session->links(), parts.nodes);
}

FileState::~FileState() {
  operations.clear();
  if (phase == Phase::kEnded || kind.adopted || session->user().is_broken()) return;
  if (is_shared()) {  // others may go on
    forget_components();
    phase = Phase::kEnded;
    return;
  }
  // A destructor cannot report; the server also ends what a lost client had open.
  if (auto done = creating() ? abort() : close(); !done) phase = Phase::kEnded;
}

// ---- what everybody needs ------------------------------------------------------------------------------------------

Status FileState::check_usable() const {
  if (parts.placed) {
    return fail(Code::kInvalid,
                fmt::format("{}: a placed file has no records of its own: open the forks of its subfiles", parts.path));
  }
  if (phase != Phase::kSealing) return check_not_ended();
  return fail(Code::kInvalid, fmt::format("{}: its commit has begun: commit it again, or give it up", parts.path));
}

Status FileState::check_not_ended() const {
  if (phase != Phase::kEnded) return {};
  return fail(Code::kInvalid, fmt::format("{}: the file is closed", parts.path));
}

Status FileState::check_may_write() const {
  if (creating() || (parts.rights & kMayWrite) != 0) return {};
  return fail(Code::kPermission, fmt::format("{}: it is open for reading; open it for writing", parts.path));
}

Status FileState::check_may_overwrite() const {
  if (creating() || !parts.is_protected()) return {};
  return fail(Code::kUnsupported, fmt::format("protected: {} has parity, and this version cannot overwrite in place; "
                                              "put it anew or copy it with --bevy 0",
                                              parts.path));
}

Status FileState::check_piece_end(std::uint64_t end) {
  if (end > kFileBytesMax)
    return fail(Code::kTooLarge, fmt::format("{}: a piece would end at byte {}; a file has at most {} bytes",
                                             parts.path, end, kFileBytesMax));
  if (creating()) return {};
  PIF_TRY_VALUE(const FileLength now, length.get(true));
  if (end <= now.bytes) return {};
  return fail(Code::kEndOfFile, fmt::format("{}: a piece ends at byte {}, and the file has {}: nothing was written",
                                            parts.path, end, now.bytes));
}

Result<std::uint64_t> FileState::scattered_offset(RecordNumber first, std::size_t bytes) {
  PIF_ASSERT(scattered.is_on(), phase);
  if (first > kFileBytesMax / parts.format.record_length) return fail(past_end(first).error());
  const std::uint64_t offset = first * parts.format.record_length;
  PIF_TRY(check_piece_end(offset + bytes));
  PIF_TRY(check_not_done());
  PIF_ASSERT(bytes <= kFileBytesMax && offset <= kFileBytesMax - bytes, offset, bytes);
  PIF_TRY(scattered.clear_gap(offset));
  return offset;
}

Status FileState::past_end(RecordNumber record) const {
  return fail(Code::kEndOfFile,
              fmt::format("{}: record {} is past the end, which is at {}", parts.path, record, length.records()));
}

Result<net::Packet> FileState::ask_node(LfsIndex lfs, const proto::Envelope& envelope) {
  const auto ask = [&] {
    net::Packet packet;
    packet.envelope = envelope;
    packet.envelope.set_capability(grant.capability());
    return session->ask_node(node(lfs), std::move(packet));
  };
  auto reply = ask();
  if (reply || reply.error().code != Code::kBadCapability || grant.is_borrowed()) return reply;
  PIF_TRY(grant.renew());
  return ask();
}

Error FileState::removed_or(Error error) {
  if (error.code != Code::kStaleNode || grant.is_borrowed()) return error;
  const Status renewed = grant.renew();
  if (renewed) return error;
  const Error& why = renewed.error();
  if (why.code == Code::kStaleFile) return why;
  return {
      why.code,
      fmt::format("{}; or the file was removed, and the PIF Server, which would know, did not answer: {}; try again",
                  error.text, why.text),
      why.node};
}

Result<bool> FileState::look_anew(Duration patience) {
  PIF_ASSERT(!creating(), parts.view);
  PIF_TRY_VALUE(const proto::NodesReply now, session->call(proto::Nodes(), std::min(kRenewPatience, patience)));
  return go_by(now);
}

// Whether the view has changed.
bool FileState::go_by(const proto::NodesReply& now) {
  access::LfsLinks& links = session->links();
  const std::vector<proto::NodeInfo> nodes(now.nodes().begin(), now.nodes().end());
  for (const proto::NodeInfo& node : nodes) links.learn(node);
  const bool has_changed = now.view() != parts.view;
  if (has_changed) links.forget_away();
  note_those_down(links, nodes);
  grant.set_view(now.view(), nodes);
  return has_changed;
}

void FileState::follow_members() {
  MemberWatch* const members = session->members();
  if (members == nullptr || members->look() == members_seen_) return;
  PIF_ASSERT(members_seen_ <= members->answers(), members_seen_, members->answers());
  members_seen_ = members->answers();
  if (members->newest().view() >= parts.view) static_cast<void>(go_by(members->newest()));  // it may be from before
}

bool FileState::may_read_again(const Error& error, std::uint64_t passed_over) {
  if (creating() || !parts.is_protected() || !access::is_lost(error.code)) return false;
  const auto has_changed = look_anew(session->timeout());
  if (has_changed && *has_changed) return true;
  if (session->links().passed_over() == passed_over) return false;
  session->links().forget_away();
  return true;
}

Result<LfsIndex> FileState::sequencer() const {
  if (!parts.is_absent(0)) return LfsIndex{0};
  const LfsIndex deputy = parity::deputy_of(parts.layout);
  PIF_ASSERT(deputy < width() && deputy != 0, deputy, width());
  if (!parts.is_absent(deputy)) return deputy;
  const auto said = [this](LfsIndex lfs) {
    return fmt::format("{} is {}", node(lfs).name(), wire::view_state_name(node(lfs).view_state()));
  };
  return fail(Code::kUnavailable,
              fmt::format("{}: nobody knows its length: {}, and its deputy {}: see pif status", parts.path, said(0),
                          said(deputy)),
              node(0).name());
}

// ---- writing -------------------------------------------------------------------------------------------------------

Status FileState::write(RecordNumber first, std::span<const std::byte> in) {
  PIF_TRY(check_usable());
  PIF_TRY(keep_rights());
  if (!parts.format.is_fixed()) {
    return fail(Code::kInvalid, fmt::format("{}: records of variable length are written in batches", parts.path));
  }
  if (creating() && !scattered.is_on()) return writer.write(first, in);
  if (creating()) {
    PIF_TRY_VALUE(const std::uint64_t offset, scattered_offset(first, in.size()));
    return scattered.write(offset, in);
  }
  PIF_TRY(check_may_write());
  const Time deadline = session->clock().now() + session->timeout();
  while (true) {
    const auto status = write_committed(first, in);
    if (status || status.error().code != Code::kRetry || session->clock().now() >= deadline) return status;
  }
}

// Up to the end records are overwritten; what goes on from there is appended. kRetry: the end has moved.
Status FileState::write_committed(RecordNumber first, std::span<const std::byte> in) {
  const std::uint64_t record_length = parts.format.record_length;
  const std::uint64_t count = (in.size() + record_length - 1) / record_length;
  PIF_TRY_VALUE(const FileLength now, length.for_records(first + count));
  if (first > now.records) return past_end(first);
  const std::uint64_t inside = std::min(count, now.records - first);
  const std::size_t inside_bytes = std::min<std::size_t>(in.size(), inside * record_length);
  PIF_ASSERT(inside <= count && inside_bytes <= in.size(), inside, count, inside_bytes);
  if (inside > 0) PIF_TRY(check_may_overwrite());
  if (count > inside) PIF_TRY(appender.append({}, in.subspan(inside_bytes), false, &now.bytes));
  return inside == 0 ? Status() : overwriter.overwrite(first, in.first(inside_bytes));
}

Status FileState::check_batch(std::span<const std::uint32_t> lengths, std::span<const std::byte> data) const {
  if (parts.format.is_fixed())
    return fail(Code::kInvalid, fmt::format("{}: its records have a fixed length: use write", parts.path));
  std::uint64_t total = 0;
  const bool delimited = parts.format.kind == RecordKind::kDelimited;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] > kRecordLengthMax) {
      return fail(Code::kTooLarge, fmt::format("{}: record {} of the batch has {} bytes, more than {}", parts.path, i,
                                               lengths[i], kRecordLengthMax));
    }
    total += lengths[i];
    if (!delimited || total > data.size()) continue;
    const bool ends = lengths[i] > 0 && data[total - 1] == std::byte{parts.format.delimiter};
    if (!ends && i + 1 < lengths.size()) {
      return fail(Code::kInvalid, fmt::format("{}: record {} of the batch lacks its delimiter", parts.path, i));
    }
  }
  if (total == data.size()) return {};
  return fail(Code::kInvalid,
              fmt::format("{}: the lengths add up to {} bytes, {} are given", parts.path, total, data.size()));
}

Status FileState::write_batch(RecordNumber first, std::span<const std::uint32_t> lengths,
                              std::span<const std::byte> data) {
  PIF_TRY(check_usable());
  PIF_TRY(keep_rights());
  PIF_TRY(check_batch(lengths, data));
  if (creating()) {
    if (first == length.records()) return writer.append_batch(lengths, data);
    if (first > length.records()) return past_end(first);
    return fail(
        Code::kUnsupported,
        fmt::format("{}: records of variable length are written in order while the file is created", parts.path));
  }
  PIF_TRY(check_may_write());
  PIF_TRY_VALUE(const FileLength now, length.for_records(first + lengths.size()));
  if (first > now.records) return past_end(first);
  if (first + lengths.size() <= now.records) {
    return lengths.empty() ? Status() : overwriter.overwrite_batch(first, lengths, data);
  }
  if (first == now.records) {
    PIF_TRY(appender.append(lengths, data, false, &now.bytes));
    return {};
  }
  return fail(Code::kInvalid, fmt::format("{}: records {} to {} are partly inside the file and partly past its end",
                                          parts.path, first, first + lengths.size()));
}

// ---- the end -------------------------------------------------------------------------------------------------------

net::Packet FileState::commit_request(const FileLength& file_length) const {
  net::Packet request;
  proto::Commit& commit = *request.envelope.mutable_commit();
  commit.set_file(parts.file.value);
  *commit.mutable_file_length() = wire::proto_of(file_length);
  if (kind.modified_ns) commit.set_modified(*kind.modified_ns);
  if (parts.is_protected()) commit.set_view(parts.view);
  commit.set_written(last_written);
  return request;
}

// A commit that is asked for again answers Done if the file is committed.
Status FileState::commit_at_server(const FileLength& file_length, const std::optional<FileLength>& if_length) {
  net::Packet request = commit_request(file_length);
  if (if_length) *request.envelope.mutable_commit()->mutable_if_length() = wire::proto_of(*if_length);
  auto committed = session->change(std::move(request), commit_change());
  if (!committed) return fail(access::explain_old_view(parts, std::move(committed.error())));
  phase = Phase::kEnded;
  return {};
}

Status FileState::check_may_commit() {
  PIF_TRY(check_not_ended());
  if (!creating() || kind.adopted)
    return fail(Code::kInvalid, fmt::format("{}: only a file being created is committed", parts.path));
  return keep_rights();
}

void FileState::enter_sealing() {
  PIF_ASSERT(creating(), phase);
  phase = Phase::kSealing;
}

Status FileState::finish_operations() {
  Status first;
  for (const auto& [number, operation] : operations) {
    auto status = operation->run();
    if (first && !status) first = std::move(status);
  }
  return first;
}

Status FileState::start_sealing() {
  PIF_TRY(check_may_commit());
  PIF_TRY(finish_operations());
  // Its requests are its own, so it takes its time; what is left to do is the commit at the server.
  if (scattered.is_on()) return seal_scattered();
  enter_sealing();
  return writer.start_sealing();
}

Status FileState::seal() {
  PIF_TRY(check_may_commit());
  PIF_TRY(finish_operations());
  if (scattered.is_on()) return seal_scattered();
  enter_sealing();
  return writer.seal();
}

Status FileState::commit(const std::optional<FileLength>& if_length) {
  PIF_TRY(seal());
  return commit_at_server(length.now(), if_length);
}

void FileState::forget_components() {
  operations.clear();
  writer.drop();
  for (const auto& component : components) component->close();
  PIF_ASSERT(operations.empty(), operations.size());
  placed.close();
}

Status FileState::abort() {
  if (phase == Phase::kEnded) return {};
  if (!creating() || kind.adopted)
    return fail(Code::kInvalid, fmt::format("{}: only a file being created is aborted", parts.path));
  phase = Phase::kEnded;
  forget_components();
  net::Packet request;
  request.envelope.mutable_abort()->set_file(parts.file.value);
  PIF_TRY(session->ask_server(std::move(request), std::min(kRenewPatience, session->timeout())));
  return {};
}

Status FileState::close() {
  if (phase == Phase::kEnded) return {};
  if (creating() && !kind.adopted && !is_shared()) return abort();
  phase = Phase::kEnded;
  forget_components();
  if (kind.adopted || is_shared()) return {};
  net::Packet request;
  proto::Close& close = *request.envelope.mutable_close();
  close.add_files(parts.file.value);
  if (is_untold_ || (length.is_known() && length.now() != parts.file_length)) add_note(close);
  PIF_TRY(session->ask_server(std::move(request), std::min(kRenewPatience, session->timeout())));
  return {};
}

// ---- when it was written to, as far as the server learns it ----

void FileState::add_note(proto::Close& close) const {
  close.set_length_file(parts.file.value);
  if (length.is_known()) *close.mutable_file_length() = wire::proto_of(length.now());
  if (is_untold_) close.set_wrote(last_written);
}

void FileState::note_written() {
  if (phase == Phase::kEnded || kind.adopted) return;
  last_written = session->clock().wall_ns();
  if (creating() || (parts.rights & kMayWrite) == 0) return;  // the commit says it
  is_untold_ = true;
  const Time now = session->clock().now();
  if (now < tell_at_) return;
  net::Packet note;
  add_note(*note.envelope.mutable_close());
  if (!session->tell_server(std::move(note))) return;
  is_untold_ = false;
  tell_at_ = now + kTellEvery;
}

Status FileState::tell_written() {
  if (!is_untold_) return {};
  proto::Close note;
  add_note(note);
  PIF_TRY(session->call(std::move(note)));
  is_untold_ = false;
  tell_at_ = session->clock().now() + kTellEvery;
  return {};
}

}  // namespace pif::client
