// Opening forks of a file, and the bytes of a placed one, which are in forks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pif/base/format.h"
#include "pif/client/client.h"

namespace pif::client {

class FileState;

// The fork's name as the server knows it; kInvalid: it cannot be the name of a fork of this file.
[[nodiscard]] Result<std::string> fork_of(const FileState& file, std::uint32_t subfile, const std::string& name);
// The fork's path for messages.
std::string shown_path(const FileState& file, const std::string& fork);
// Opens a fork. kNotFound: there is none.
[[nodiscard]] Result<std::unique_ptr<FileState>> open_fork(const FileState& of, std::uint32_t subfile,
                                                           const std::string& name, Client::Mode mode);

// The bytes of a placed file: those of the forks "data" of its subfiles, one after another. One thread at a time.
class PlacedBytes {
 public:
  explicit PlacedBytes(const FileState& file);
  ~PlacedBytes();
  PlacedBytes(const PlacedBytes&) = delete;
  PlacedBytes& operator=(const PlacedBytes&) = delete;

  // Looks at all forks. Until it is asked again, pread() goes by what it found.
  [[nodiscard]] Result<FileLength> measure();
  // Fewer only at the end. Measures if nobody has.
  [[nodiscard]] Result<std::size_t> pread(std::span<std::byte> out, std::uint64_t offset);
  // Closes the forks.
  void close();
  // The length that was measured last.
  FileLength length() const { return length_.value_or(FileLength{}); }

 private:
  struct Part {
    std::unique_ptr<FileState> fork;  // null: there is none
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] Status open(std::uint32_t subfile);

  const FileState& file_;
  std::vector<Part> parts_;           // of the subfiles, in their order
  std::optional<FileLength> length_;  // nothing: it is to be measured
};

}  // namespace pif::client
