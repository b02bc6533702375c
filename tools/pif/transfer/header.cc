#include "transfer/header.h"

#include <cctype>

#include <fmt/format.h>

#include "command/io.h"
#include "pif/base/limits.h"
#include "text/text.h"

namespace pif::cli {
namespace {

constexpr std::string_view kBedMagic = "\x6c\x1b";  // PLINK 1
constexpr std::size_t kBedBytes = 3;                // the last one: 1, rows are variants; 0, samples
constexpr std::size_t kRoomForOthers = 1024;        // of a file's attributes
constexpr std::size_t kHeaderBytesLimit = kAttributeBytesMax - kRoomForOthers;
constexpr std::size_t kPbmBytesMax = 4096;  // comments included

Result<std::string> read_exactly(int fd, std::size_t bytes, const std::string& name) {
  std::string text(bytes, '\0');
  PIF_TRY_VALUE(const std::size_t n, read_full(fd, std::as_writable_bytes(std::span(text)), name));
  if (n < bytes)
    return fail(Code::kCorrupt, fmt::format("{} has {} bytes, less than its header of {}", name, n, bytes));
  return text;
}

Result<Header> read_counted(int fd, std::string_view kind, const std::string& name) {
  const auto bytes = parse_number(kind, "--header");
  if (!bytes) return fail(Code::kInvalid, fmt::format("--header takes a number of bytes, pbm or bed, not '{}'", kind));
  if (*bytes > kHeaderBytesLimit)
    return fail(Code::kInvalid, fmt::format("a header has at most {} bytes, not {}", kHeaderBytesLimit, *bytes));
  PIF_TRY_VALUE(std::string text, read_exactly(fd, *bytes, name));
  return Header{std::move(text), {}};
}

// Reads a PBM header byte by byte, because what follows it are records: "P4", white space and comments, width, the
// same, height, one white space character.
class PbmReader {
 public:
  PbmReader(int fd, const std::string& name) : fd_(fd), name_(name) {}

  Result<Header> read() {
    PIF_TRY_VALUE(const char p, next());
    PIF_TRY_VALUE(const char four, next());
    if (p != 'P' || four != '4') return no_pbm();
    PIF_TRY_VALUE(const std::uint64_t width, number());
    PIF_TRY(number());
    if (width == 0 || width > std::uint64_t{kRecordLengthMax} * 8)
      return fail(Code::kUnsupported, fmt::format("{}: rows of {} bits are not supported", name_, width));
    return Header{std::move(text_), static_cast<std::uint32_t>((width + 7) / 8)};
  }

 private:
  tl::unexpected<Error> no_pbm() const {
    return fail(Code::kCorrupt, name_ + " does not start like a binary PBM (P4)");
  }
  Result<char> next() {
    if (text_.size() >= kPbmBytesMax) return no_pbm();
    PIF_TRY_VALUE(const std::string one, read_exactly(fd_, 1, name_));
    text_ += one;
    return one[0];
  }
  // The number after white space and comments, and the one white space character behind it.
  Result<std::uint64_t> number() {
    std::string digits;
    bool comment = false;
    while (true) {
      PIF_TRY_VALUE(const char c, next());
      if (comment) {
        comment = c != '\n';
      } else if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
        digits += c;
      } else if (c == '#' && digits.empty()) {
        comment = true;
      } else if (std::isspace(static_cast<unsigned char>(c)) == 0) {
        return no_pbm();
      } else if (!digits.empty()) {
        return parse_number(digits, name_);
      }
    }
  }

  int fd_;
  const std::string& name_;
  std::string text_;
};

}  // namespace

Result<Header> read_header(int fd, std::string_view kind, const std::string& name) {
  if (kind == "pbm") return PbmReader(fd, name).read();
  if (kind != "bed") return read_counted(fd, kind, name);
  PIF_TRY_VALUE(std::string header, read_exactly(fd, kBedBytes, name));
  if (!header.starts_with(kBedMagic) || static_cast<unsigned char>(header.back()) > 1)
    return fail(Code::kCorrupt, name + " does not start like a PLINK 1 .bed file");
  return Header{std::move(header), {}};
}

}  // namespace pif::cli
