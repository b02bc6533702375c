#include "session/message_io.h"

#include "file/file_state.h"

namespace pif::client {

Requests::Requests(FileState& file) : access::Requests(file.session->links(), file.grant), session_(*file.session) {}

}  // namespace pif::client
