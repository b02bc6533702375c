// A file's bytes as `pif get` gives them: the header that was kept aside, then the records.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "pif/client/client.h"

namespace pif::cli {

class ByteView {
 public:
  // `client` must outlive it.
  [[nodiscard]] static Result<ByteView> open(Client& client, const std::string& path);

  File& file() { return file_; }
  const std::string& header() const { return header_; }
  const FileLength& file_length() const { return file_length_; }  // when it was opened
  std::uint64_t size() const { return header_.size() + file_length_.bytes; }

  // Fills `out`; kStaleFile if the file has become shorter.
  [[nodiscard]] Status read(std::uint64_t offset, std::span<std::byte> out);
  // The bytes of the range in order, in pieces that begin small and grow, until `visit` wants no more.
  enum class More : bool { kNo, kYes };
  [[nodiscard]] Status for_each_piece(Range bytes,
                                      const std::function<Result<More>(std::span<const std::byte>)>& visit);
  // The same from the end to the front.
  [[nodiscard]] Status for_each_piece_back(Range bytes,
                                           const std::function<Result<More>(std::span<const std::byte>)>& visit);

 private:
  ByteView(File file, std::string header, FileLength file_length)
      : file_(std::move(file)), header_(std::move(header)), file_length_(file_length) {}

  File file_;
  std::string header_;
  FileLength file_length_;
};

}  // namespace pif::cli
