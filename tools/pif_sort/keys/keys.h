// The keys that records are sorted by. Every key specification turns a record into one string of bytes, its sort key,
// such that comparing sort keys as bytes (memcmp, a prefix first) orders records as asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "keys/encode.h"
#include "pif/base/format.h"
#include "pif/base/result.h"

namespace pif::sort {

using Bytes = std::span<const std::byte>;

// A record's number, where it travels with a record or a key.
inline constexpr std::size_t kNumberBytes = sizeof(std::uint64_t);

// By position up to kFloat, then by field: bytes, or encode.h.
enum class KeyType : std::uint8_t {
  kBytes,
  kUnsigned,
  kSigned,
  kFloat,
  kText,
  kNumeric,
  kGeneralNumeric,
  kHumanNumeric,
  kMonth,
  kVersion
};
inline bool is_by_field(KeyType type) { return type >= KeyType::kText; }

// The characters of a text that do not count.
enum class Ignored : std::uint8_t {
  kNone,
  kNonprinting,    // what is no printable ASCII
  kNondictionary,  // what is no blank, ASCII letter or digit
};

// Bytes [offset, offset + length) of a record (kBytes to kFloat; records that end before it: kInvalid for numbers, what
// is there for bytes), or text from field `first_field`, character `first_char` to the end of field `last_field` or its
// character `last_char` (all others), fields and characters from 1 as sort(1) has them.
struct Key {
  KeyType type = KeyType::kText;
  bool reverse = false;
  // by position
  std::uint32_t offset = 0;
  std::uint32_t length = 0;
  bool big_endian = false;
  // by field
  std::uint32_t first_field = 1, first_char = 1;
  std::uint32_t last_field = 0;  // 0: the end of the record
  std::uint32_t last_char = 0;   // 0: the end of the field
  bool skip_first_blanks = false, skip_last_blanks = false;
  // The characters of the text that count, before its value is taken.
  Ignored ignored = Ignored::kNone;
  bool fold = false;       // lower-case ASCII letters count as upper-case ones
  bool is_column = false;  // the text of a CSV record's field `first_field`
};

// How a text is compared, by the letters that sort(1) has for it.
struct KeyLetters {
  bool numeric = false;          // n
  bool general_numeric = false;  // g
  bool human_numeric = false;    // h
  bool month = false;            // M
  bool version = false;          // V
  bool only_dictionary = false;  // d; stronger than i
  bool only_printing = false;    // i
  bool fold = false;             // f
  bool reverse = false;          // r
  bool skip_blanks = false;      // b
};

// The letters of the object are for keys that have none of their own (by position: `reverse` alone).
struct KeyOptions : KeyLetters {
  std::vector<std::string>
      keys;  // "OFF:LEN[:b|u|i|f[le|be]][r]" or "F[.C][OPTS][,F[.C][OPTS]]"; none: the whole record
  std::optional<char> separator;  // of fields; none: from non-blank to blank
  bool csv = false;  // records are CSV text: a key is a column, "N[:OPTS]" or "N[,N]OPTS"; separator: else a comma
  bool null_ended = false;  // the records must end in a zero byte: else kInvalid
};

// Makes sort keys. Copyable, and const calls from several threads are fine.
class KeyMaker {
 public:
  // kInvalid names the key, what is wrong with it, and what would be right.
  static Result<KeyMaker> make(const KeyOptions& options, const Format& format);

  // Replaces `out`. The record includes its terminator, if its format has one: the key does not see it.
  [[nodiscard]] Status make_key(Bytes record, std::string& out) const;
  // The sort key with the record's number, as one string: no two records have the same, and bytes compare as records
  // do.
  [[nodiscard]] Status make_full_key(Bytes record, std::uint64_t number, std::string& out) const;
  // Bytes of that, at most, for a record with this sort key.
  std::uint64_t full_key_bytes(std::string_view key) const;
  // Bytes that every sort key has, if they all have the same number.
  std::optional<std::uint32_t> fixed_length() const { return fixed_length_; }
  // If the sort key is one range of the record's bytes as they are: its place. Then no key need be made.
  std::optional<std::uint32_t> plain_offset() const { return plain_offset_; }
  // If records compare as one stretch of their bytes does, text_of(), or the other way round with is_reversed(). A
  // stretch that is the beginning of another one comes first.
  bool is_text() const { return is_text_; }
  bool is_reversed() const { return keys_.front().reverse; }
  std::string_view text_of(Bytes record) const;
  // The common start of nearly all keys of this sort, if they are text of variable length: their chunks
  // (runs/element.h) begin behind that. All workers say the same.
  const std::string& common() const { return common_; }
  void set_common(std::string common) { common_ = std::move(common); }
  // If the sort key is one value of which the first kWholeBytes bytes decide where the last of these is 0 (encode.h).
  bool is_value() const {
    const KeyType type = keys_.front().type;
    return keys_.size() == 1 && type >= KeyType::kNumeric && type <= KeyType::kMonth;
  }

 private:
  [[nodiscard]] Status add_position(const Key& key, Bytes record, std::string& out) const;
  void add_text(const Key& key, std::string_view text, bool is_last, std::string& out) const;
  std::string_view column_text(const Key& key, std::string_view record, std::string& buffer) const;
  std::string_view field_text(const Key& key, std::string_view record) const;
  std::size_t field_begin(const Key& key, std::string_view record) const;
  std::size_t field_end(const Key& key, std::string_view record) const;

  Format format_;
  std::vector<Key> keys_;
  std::optional<char> separator_;
  std::optional<std::uint32_t> fixed_length_;
  std::optional<std::uint32_t> plain_offset_;
  bool is_text_ = false;
  std::string common_;
};

// Whether a record has its delimiter, if records of that format have one; and the record without it.
bool is_ended(Bytes record, const Format& format);
Bytes without_terminator(Bytes record, const Format& format);

}  // namespace pif::sort
