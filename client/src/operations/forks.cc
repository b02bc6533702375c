// The forks of a file, of pif/client/client.h.
#include "file/file_state.h"
#include "file/opened_state.h"
#include "file/placed_bytes.h"
#include "names/names.h"
#include "operations/opening.h"
#include "session/in_use.h"

namespace pif {

using client::FileAccess;
using client::fork_of;
using client::shown_path;
using client::strip;

Result<File> Client::create_fork(const File& of, std::uint32_t subfile, const std::string& name,
                                 const CreateOptions& options) {
  return client::in_use(session_->user(), [&]() -> Result<File> {
    PIF_TRY_VALUE(const std::string fork, fork_of(*of.state_, subfile, name));
    PIF_TRY(options.format.validate());
    net::Packet request = client::create_packet(fork, options, client::WhenThere::kAtCommit);
    request.envelope.mutable_create()->set_fork_of(of.id());
    auto reply = session_->ask_server(std::move(request));
    if (!reply) return fail(strip(std::move(reply.error())));
    PIF_TRY_VALUE(auto state, client::created_state(session_, shown_path(*of.state_, fork), options,
                                                    reply->envelope.create_reply()));
    return FileAccess::make(std::move(state));
  });
}

Result<File> Client::open_fork(const File& of, std::uint32_t subfile, const std::string& name, Mode mode) {
  return client::in_use(session_->user(), [&]() -> Result<File> {
    PIF_TRY_VALUE(auto state, client::open_fork(*of.state_, subfile, name, mode));
    return FileAccess::make(std::move(state));
  });
}

Result<ListPage> Client::list_forks(const File& of, const std::string& after, std::uint32_t limit) {
  return client::in_use(session_->user(), [&]() -> Result<ListPage> {
    PIF_TRY(of.state_->check_not_ended());
    PIF_TRY(client::sendable("/" + after));
    proto::List list;
    list.set_fork_of(of.id());
    list.set_after(after);
    list.set_limit(limit);
    return client::list_page(*session_, std::move(list));
  });
}

Status Client::remove_fork(const File& of, std::uint32_t subfile, const std::string& name) {
  return client::in_use(session_->user(), [&]() -> Status {
    PIF_TRY_VALUE(std::string fork, fork_of(*of.state_, subfile, name));
    proto::Remove request;
    request.set_fork_of(of.id());
    request.add_paths(fork);
    return client::remove_one(*session_, std::move(request), shown_path(*of.state_, fork));
  });
}

}  // namespace pif
