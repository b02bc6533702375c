// Compressed local files: which kind they are, by their names, and how their bytes are made and read. Any thread; a
// StreamCodec belongs to one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "pif/base/result.h"

namespace pif::cli {

enum class Compression : std::uint8_t { kNone, kGzip, kZstd, kXz };

// The value of an option: each file as its name says.
inline constexpr std::string_view kByName = "auto";

// "gzip", "zstd", "xz"; kNone for anything else.
Compression compression_called(std::string_view name);
// By the end of a name: .gz, .zst, .xz; kNone for any other.
Compression compression_of_name(std::string_view name);
// ".gz"
std::string_view suffix_of(Compression kind);
// The name without the suffix of that kind, if it has it and something before it.
std::string without_suffix(const std::string& name, Compression kind);

// One direction of one stream.
class StreamCodec {
 public:
  virtual ~StreamCodec() = default;
  // Takes bytes off the front of `in`, and fills `out` from its front, both as far as it goes. is_last: nothing comes
  // behind `in`. True: the stream has ended, and all of it is out. An error's text follows the name of what is read:
  // kCorrupt, "is damaged: ..." or "is cut off"; kTooLarge: it takes more memory than it may.
  [[nodiscard]] virtual Result<bool> run(std::span<const std::byte>& in, bool is_last, std::span<std::byte>& out) = 0;
};

// kind: any but kNone. A decoder takes streams one behind another, as the programs do.
std::unique_ptr<StreamCodec> decoder_of(Compression kind);
std::unique_ptr<StreamCodec> encoder_of(Compression kind);

}  // namespace pif::cli
