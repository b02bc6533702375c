// How long a file is, as far as is known here: as written when it is being created, else as its sequencer said last.
#pragma once

#include <cstdint>

#include "pif/base/format.h"
#include "pif/base/ids.h"
#include "pif/base/result.h"
#include "pif/net/messenger.h"

namespace pif::client {

class FileState;

class KnownLength {
 public:
  explicit KnownLength(FileState& file);

  const FileLength& now() const { return file_length_; }
  std::uint64_t records() const { return file_length_.records; }
  std::uint64_t bytes() const { return file_length_.bytes; }
  // More than the server's hint.
  bool is_known() const { return known_; }

  // Others say how long a file is. kCorrupt: with fixed records no file is so long.
  [[nodiscard]] Status check(const FileLength& file_length) const;
  // The same of what LFS 0 says. kStaleNode: it is less than the directory knows, or knew (FileState::removed_or).
  [[nodiscard]] Status check_published(const FileLength& file_length) const;
  // LFS 0 of the file says `said`. For a file with parity it has a component only once it has rows, or somebody has
  // appended; it says 0 until then, and the directory's length stands.
  FileLength as_published(const FileLength& said) const;
  // The file's length: as written when creating, else as its sequencer says (asked again each time if `fresh`).
  [[nodiscard]] Result<FileLength> get(bool fresh);
  // The length, asked anew if `records` are more than known, or end with a short record, which others may have filled
  // up.
  [[nodiscard]] Result<FileLength> for_records(std::uint64_t records);
  // Whether the last record, as far as is known here, is shorter than the others.
  bool ends_short() const;
  std::uint32_t record_bytes(RecordNumber n) const;  // fixed records

  // Being created: it is so long now.
  void grow_to(const FileLength& file_length);
  // A read goes by this length from its start to its end.
  void go_by(const FileLength& file_length) { file_length_ = file_length; }
  void set(const FileLength& file_length) {
    file_length_ = file_length;
    known_ = true;
  }
  void forget() { known_ = false; }

 private:
  [[nodiscard]] Status ask_until_known();
  [[nodiscard]] Status ask();
  [[nodiscard]] Status ask_deputy(const Error& why);
  // kUnavailable: others take part by now than this client goes by.
  [[nodiscard]] Status check_view(const net::Packet& reply) const;

  FileState& file_;
  bool known_ = false;
  FileLength file_length_;
};

}  // namespace pif::client
