// The Client of pif/client/client.h: creating and opening files, one or many at once.
#include "operations/opening.h"

#include <fmt/format.h>

#include "file/file_state.h"
#include "file/opened_state.h"
#include "names/names.h"
#include "session/in_use.h"

namespace pif {

using client::FileParts;
using client::sendable;
using client::strip;

namespace {

using client::created_state;
using client::joined_state;
using client::open_packet;
using client::opened_state;

// A file for each of `sound`: what `make` makes of its reply, or what was wrong with it. Only the sound ones were asked
// for.
template <typename Make>
std::vector<Result<File>> make_each(const std::vector<Status>& sound, std::vector<Result<net::Packet>> replies,
                                    const Make& make) {
  std::vector<Result<File>> out;
  auto reply = replies.begin();
  for (std::size_t i = 0; i < sound.size(); ++i) {
    if (!sound[i]) {
      out.emplace_back(fail(sound[i].error()));
      continue;
    }
    out.push_back(*reply ? make(i, (*reply)->envelope) : fail(strip(std::move(reply->error()))));
    ++reply;
  }
  return out;
}

}  // namespace

Result<File> Client::create(const std::string& path, const CreateOptions& options) {
  return client::in_use(session_->user(), [&]() -> Result<File> {
    PIF_TRY(sendable(path));
    PIF_TRY(options.format.validate());
    auto reply = session_->ask_server(client::create_packet(path, options, client::WhenThere::kAtCommit));
    if (!reply) return fail(strip(std::move(reply.error())));
    PIF_TRY_VALUE(auto state, created_state(session_, path, options, reply->envelope.create_reply()));
    return File(std::move(state));
  });
}

Result<Client::CreatedNow> Client::create_now(const std::string& path, const CreateOptions& options) {
  return client::in_use(session_->user(), [&]() -> Result<CreatedNow> {
    PIF_TRY(sendable(path));
    PIF_TRY(options.format.validate());
    auto reply = session_->change(client::create_packet(path, options, client::WhenThere::kAtOnceAndCreated),
                                  {"the file was created", path});
    if (!reply) return fail(strip(std::move(reply.error())));
    const proto::CreateReply& created = reply->envelope.create_reply();
    PIF_TRY_VALUE(Entry entry, client::entry_of(created.entry()));
    PIF_TRY_VALUE(auto state, created_state(session_, path, options, created));
    return CreatedNow{File(std::move(state)), std::move(entry)};
  });
}

Result<File> Client::create_instead_of(std::uint64_t id) {
  return client::in_use(session_->user(), [&]() -> Result<File> {
    proto::Create create;
    create.set_instead_of(id);
    auto reply = session_->ask_server(net::packet_of(std::move(create)));
    if (!reply) return fail(strip(std::move(reply.error())));
    PIF_TRY_VALUE(auto state, created_state(session_, fmt::format("the new version of file {}", id), {},
                                            reply->envelope.create_reply()));
    state->note_written();  // the old bytes go, though none may come
    return File(std::move(state));
  });
}

std::vector<Result<File>> Client::create_many(std::span<const NewFile> files) {
  return client::in_use_each(session_->user(), files.size(), [&] {
    std::vector<net::Packet> requests;
    std::vector<Status> sound;
    for (const NewFile& file : files) {
      Status valid = sendable(file.path);
      if (valid) valid = file.options.format.validate();
      if (valid) requests.push_back(client::create_packet(file.path, file.options, client::WhenThere::kAtCommit));
      sound.push_back(std::move(valid));
    }
    const auto make = [&](std::size_t i, const proto::Envelope& reply) -> Result<File> {
      PIF_TRY_VALUE(auto state, created_state(session_, files[i].path, files[i].options, reply.create_reply()));
      return File(std::move(state));
    };
    return make_each(sound, session_->ask_server_all(std::move(requests)), make);
  });
}

Result<File> Client::join(std::string_view token) {
  return client::in_use(session_->user(), [&]() -> Result<File> {
    proto::Join join;
    join.set_token(std::string(token));
    auto reply = session_->ask_server(net::packet_of(std::move(join)));
    if (!reply) return fail(strip(std::move(reply.error())));
    PIF_TRY_VALUE(auto state, joined_state(session_, reply->envelope.join_reply()));
    return File(std::move(state));
  });
}

Result<File> Client::open(const std::string& path, Mode mode) {
  return client::in_use(session_->user(), [&]() -> Result<File> {
    PIF_TRY(sendable(path));
    auto reply = session_->ask_server(open_packet(*session_, path, mode));
    if (!reply) return fail(strip(std::move(reply.error())));
    PIF_TRY_VALUE(auto state, opened_state(session_, path, mode, reply->envelope.open_reply(), false));
    return File(std::move(state));
  });
}

Result<File> Client::open_by_id(std::uint64_t id, Mode mode) {
  return client::in_use(session_->user(), [&]() -> Result<File> {
    net::Packet request = open_packet(*session_, {}, mode);
    request.envelope.mutable_open()->set_file(id);
    request.envelope.mutable_open()->set_anew(true);
    auto reply = session_->ask_server(std::move(request));
    if (!reply) return fail(strip(std::move(reply.error())));
    const proto::OpenReply& opened = reply->envelope.open_reply();
    PIF_TRY_VALUE(auto state, opened_state(session_, opened.entry().name(), mode, opened, false));
    return File(std::move(state));
  });
}

std::vector<Result<File>> Client::open_small_many(std::span<const std::string> paths) {
  return client::in_use_each(session_->user(), paths.size(), [&] {
    std::vector<net::Packet> requests;
    std::vector<Status> sound;
    for (const std::string& path : paths) {
      sound.push_back(sendable(path));
      if (sound.back()) requests.push_back(open_packet(*session_, path, Mode::kRead));
    }
    const auto make = [&](std::size_t i, const proto::Envelope& reply) -> Result<File> {
      PIF_TRY_VALUE(auto state, opened_state(session_, paths[i], Mode::kRead, reply.open_reply(), true));
      return File(std::move(state));
    };
    return make_each(sound, session_->ask_server_all(std::move(requests)), make);
  });
}

namespace client {

File FileAccess::make(std::unique_ptr<FileState> state) { return File(std::move(state)); }

Result<File> adopt_file(std::shared_ptr<Session> session, FileParts parts) {
  PIF_TRY_VALUE(auto state, adopted_state(std::move(session), std::move(parts), false));
  return FileAccess::make(std::move(state));
}

Result<File> read_sealed(File& file, const FileLength& file_length) {
  FileParts parts = parts_of(file);
  parts.creating = false;
  parts.rights = kMayRead;
  parts.file_length = file_length;
  PIF_TRY_VALUE(auto state, adopted_state(file.state().session, std::move(parts), true));
  state->length.set(file_length);
  return FileAccess::make(std::move(state));
}

}  // namespace client

}  // namespace pif
