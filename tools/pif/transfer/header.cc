#include "transfer/header.h"

#include <fmt/format.h>

#include "command/io.h"
#include "pif/base/limits.h"
#include "pif/tool/csv.h"
#include "text/pbm.h"
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
  return Header{std::move(text), {}, 0};
}

// Reads a PBM header byte by byte, because what follows it are records.
Result<Header> read_pbm(int fd, const std::string& name) {
  PbmHeader pbm;
  std::string text;
  for (auto state = PbmHeader::State::kMore; state != PbmHeader::State::kWhole;) {
    if (state == PbmHeader::State::kWrong || text.size() >= kPbmBytesMax)
      return fail(Code::kCorrupt, name + " does not start like a binary PBM (P4)");
    PIF_TRY_VALUE(const std::string one, read_exactly(fd, 1, name));
    text += one;
    state = pbm.take(one[0]);
  }
  if (pbm.width() == 0 || pbm.row_bytes() > kRecordLengthMax)
    return fail(Code::kUnsupported, fmt::format("{}: rows of {} bits are not supported", name, pbm.width()));
  return Header{std::move(text), static_cast<std::uint32_t>(pbm.row_bytes()), pbm.height()};
}

// The first record, byte by byte, because what follows it are records.
Result<Header> read_csv(int fd, const std::string& name) {
  tool::CsvRecords records;
  std::string text;
  for (bool is_whole = false; !is_whole;) {
    char c = 0;
    PIF_TRY_VALUE(const std::size_t got, read_full(fd, std::as_writable_bytes(std::span(&c, 1)), name));
    if (got == 0 && (text.empty() || records.is_quoted()))
      return fail(Code::kCorrupt, name + " does not begin with a line of column names");
    text += got == 0 ? '\n' : c;
    if (text.size() > kHeaderBytesLimit)
      return fail(Code::kCorrupt, fmt::format("{}: the first line has more than {} bytes", name, kHeaderBytesLimit));
    is_whole = records.find_end(std::string_view(text).substr(text.size() - 1)).has_value();
  }
  return Header{std::move(text), {}, 0};
}

}  // namespace

Result<Header> read_header(int fd, std::string_view kind, const std::string& name) {
  if (kind == "pbm") return read_pbm(fd, name);
  if (kind == kCsvHeader) return read_csv(fd, name);
  if (kind != "bed") return read_counted(fd, kind, name);
  PIF_TRY_VALUE(std::string header, read_exactly(fd, kBedBytes, name));
  if (!header.starts_with(kBedMagic) || static_cast<unsigned char>(header.back()) > 1)
    return fail(Code::kCorrupt, name + " does not start like a PLINK 1 .bed file");
  return Header{std::move(header), {}, 0};
}

Status Header::check_data(std::uint64_t data_bytes, const std::string& name) const {
  if (!record_length || data_bytes == rows * *record_length) return {};
  return fail(Code::kCorrupt, fmt::format("{}: its header says {} rows of {} bytes, and behind it are {} bytes, not {}",
                                          name, rows, *record_length, data_bytes, rows * *record_length));
}

}  // namespace pif::cli
