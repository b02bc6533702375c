// What records are sorted by. Every key specification turns a record into one string of bytes, its sort key, such that
// comparing sort keys as bytes (memcmp, a prefix first) orders records as asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pif/base/format.h"
#include "pif/base/result.h"

namespace pif::sort {

using Bytes = std::span<const std::byte>;

// A record's number, where it travels with a record or a key.
inline constexpr std::size_t kNumberBytes = sizeof(std::uint64_t);

enum class KeyType : std::uint8_t { kBytes, kUnsigned, kSigned, kFloat, kText, kNumeric };

// Bytes [offset, offset + length) of a record (kBytes to kFloat; records that end before it: kInvalid for numbers, what
// is there for bytes), or text from field `first_field`, character `first_char` to the end of field `last_field` or its
// character `last_char` (kText and kNumeric), fields and characters from 1 as sort(1) has them.
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
};

struct KeyOptions {
  std::vector<std::string> keys;  // "OFF:LEN[:b|u|i|f[le|be]][r]" or "F[.C][bnr][,F[.C][bnr]]"; none: the whole record
  std::optional<char> separator;  // of fields; none: from non-blank to blank
  bool numeric = false, reverse = false,
       skip_blanks = false;  // for keys that say nothing of their own (by position: `reverse` alone)
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
  // What nearly all keys of this sort begin with, if they are text of variable length: their chunks (runs/element.h)
  // begin behind that. All workers say the same.
  const std::string& common() const { return common_; }
  void set_common(std::string common) { common_ = std::move(common); }
  // If the sort key is one number as sort(1) -n has it: two that have the same first 11 bytes, zeros behind shorter
  // ones, are the same if the last of these is 0.
  bool is_number() const { return keys_.size() == 1 && keys_.front().type == KeyType::kNumeric; }

 private:
  [[nodiscard]] Status add_position(const Key& key, Bytes record, std::string& out) const;
  void add_text(const Key& key, std::string_view text, bool is_last, std::string& out) const;
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
// The number at the start of `text` as sort(1) -n takes it (blanks, "-", digits, ".", digits; else 0), as bytes in its
// order.
void add_number(std::string_view text, std::string& out);

}  // namespace pif::sort
