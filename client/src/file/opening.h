// Opening what has no path here, and what opening has in common.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "pif/client/client.h"
#include "pif/client/session.h"

namespace pif::client {

struct FileAccess {
  static File make(std::unique_ptr<FileState> state);
};

net::Packet open_packet(const Session& session, const std::string& path, Client::Mode mode);
// What the server has opened or created, under this path for messages.
[[nodiscard]] Result<std::unique_ptr<FileState>> opened_state(const std::shared_ptr<Session>& session,
                                                              const std::string& path, Client::Mode mode,
                                                              const proto::OpenReply& opened, bool is_small);
[[nodiscard]] Result<std::unique_ptr<FileState>> created_state(const std::shared_ptr<Session>& session,
                                                               const std::string& path, const CreateOptions& options,
                                                               const proto::CreateReply& created);

}  // namespace pif::client
