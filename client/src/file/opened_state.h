// An open file of what the server's reply says of it. The paths are for messages.
#pragma once

#include <memory>
#include <string>

#include "pif/client/client.h"
#include "pif/client/session.h"

namespace pif::client {

class FileState;

net::Packet open_packet(const Session& session, const std::string& path, Client::Mode mode);
// All fail with kInternal if the reply contradicts itself. opened_state(): kUnsupported if an older release made the
// file and it is to be written.
[[nodiscard]] Result<std::unique_ptr<FileState>> opened_state(const std::shared_ptr<Session>& session,
                                                              const std::string& path, Client::Mode mode,
                                                              const proto::OpenReply& opened, bool is_small);
[[nodiscard]] Result<std::unique_ptr<FileState>> created_state(const std::shared_ptr<Session>& session,
                                                               const std::string& path, const CreateOptions& options,
                                                               const proto::CreateReply& created);
// A file that another client creates, in that client's view.
[[nodiscard]] Result<std::unique_ptr<FileState>> joined_state(const std::shared_ptr<Session>& session,
                                                              const proto::JoinReply& joined);
// A file on parts that somebody else opened or created, and closes.
[[nodiscard]] Result<std::unique_ptr<FileState>> adopted_state(std::shared_ptr<Session> session, FileParts parts,
                                                               bool held);

}  // namespace pif::client
