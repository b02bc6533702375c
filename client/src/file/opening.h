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

// A committed file, for reading, by its id, which somebody who has it open has told. Errors: those of Client::open();
// kStaleFile: it is gone, or may not be reached.
[[nodiscard]] Result<File> open_by_id(Client& client, std::uint64_t file);

net::Packet open_packet(const Session& session, const std::string& path, Client::Mode mode);
// What the server has opened or created, under this path for messages.
[[nodiscard]] Result<std::unique_ptr<FileState>> opened_state(const std::shared_ptr<Session>& session,
                                                              const std::string& path, Client::Mode mode,
                                                              const proto::OpenReply& opened, bool is_small);
[[nodiscard]] Result<std::unique_ptr<FileState>> created_state(const std::shared_ptr<Session>& session,
                                                               const std::string& path, const CreateOptions& options,
                                                               const proto::CreateReply& created);

}  // namespace pif::client
