// Leading bytes of a file that are not records: `put --header` keeps them as an attribute, get and cat give them back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pif/base/result.h"

namespace pif::cli {

inline constexpr std::string_view kHeaderAttribute = "header";
inline constexpr std::string_view kCsvHeader = "csv";  // a kind: `put --csv`

struct Header {
  std::string bytes;
  // The records behind the header of an image: bytes of a row, and how many rows.
  std::optional<std::uint32_t> record_length;
  std::uint64_t rows = 0;

  // Whether as many bytes are behind it as it says, if it does. kCorrupt: less or more, such as a second image.
  [[nodiscard]] Status check_data(std::uint64_t data_bytes, const std::string& name) const;
};

// Reads the header from the start of `fd`, which is left behind it. `kind`: a number of bytes, "pbm" (a P4 bitmap),
// "bed" (a PLINK 1 genotype file) or "csv" (the first record, with column names). kInvalid if the kind is none of
// these, kCorrupt if the file does not start like that.
[[nodiscard]] Result<Header> read_header(int fd, std::string_view kind, const std::string& name);

}  // namespace pif::cli
