// When a file was written to, as far as the server learns it.
#include "file/file_state.h"
#include "pif/wire/convert.h"

namespace pif::client {

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
