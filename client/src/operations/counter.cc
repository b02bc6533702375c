#include "pif/client/counter.h"

#include "file/file_state.h"
#include "session/in_use.h"

namespace pif::client {

Result<std::uint64_t> open_counter(File& file) {
  FileState& state = file.state();
  return in_use(state.session->user(), [&]() -> Result<std::uint64_t> {
    PIF_TRY(state.check_usable());
    proto::ParallelOpen request;
    request.set_file(state.parts.file.value);
    request.set_members(1);
    request.set_writes(state.creating());
    PIF_TRY_VALUE(const proto::ParallelOpenReply reply, state.session->call(std::move(request)));
    return reply.group();
  });
}

Result<std::int64_t> add_to_counter(Client& client, std::uint64_t counter, std::int64_t add) {
  return in_use(client.session().user(), [&]() -> Result<std::int64_t> {
    proto::AddToCounter request;
    request.set_group(counter);
    request.set_add(add);
    PIF_TRY_VALUE(const proto::AddToCounterReply reply, client.session().call(std::move(request)));
    return reply.before();
  });
}

Status close_counter(Client& client, std::uint64_t counter) {
  return in_use(client.session().user(), [&]() -> Status {
    proto::ParallelClose request;
    request.set_group(counter);
    PIF_TRY(client.session().call(std::move(request)));
    return {};
  });
}

}  // namespace pif::client
