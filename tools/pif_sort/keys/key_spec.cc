#include "keys/key_spec.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace pif::sort {
namespace {

// Reads a specification from the front.
class Spec {
 public:
  explicit Spec(const std::string& text) : text_(text), rest_(text) {}

  bool is_at_end() const { return rest_.empty(); }
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool take(std::string_view word) {
    if (rest_.substr(0, word.size()) != word) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  Result<std::uint32_t> number() {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) return wrong(fmt::format("a number is needed at \"{}\"", rest_));
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }
  tl::unexpected<Error> wrong(std::string_view what) const {
    return fail(
        Code::kInvalid,
        fmt::format("key \"{}\": {}; a key is OFF:LEN[:b|u|i|f[le|be]][r], or F[.C][bnr][,F[.C][bnr]]", text_, what));
  }
  tl::unexpected<Error> wrong_rest() const { return wrong(fmt::format("\"{}\" means nothing", rest_)); }

 private:
  const std::string& text_;
  std::string_view rest_;
};

Status check_number(const Spec& spec, const Key& key) {
  const bool is_size = key.length == 1 || key.length == 2 || key.length == 4 || key.length == 8;
  if (key.type == KeyType::kFloat && key.length != 4 && key.length != 8) return spec.wrong("a float has 4 or 8 bytes");
  if (!is_size) return spec.wrong("an integer has 1, 2, 4 or 8 bytes");
  return {};
}

// After "OFF:".
Result<Key> by_position(Spec& spec, std::uint32_t offset, const KeyOptions& options, const Format& format) {
  Key key;
  key.type = KeyType::kBytes;
  key.offset = offset;
  PIF_TRY_VALUE(key.length, spec.number());
  const bool has_type = spec.take(':');
  if (has_type) {
    if (spec.take('u')) {
      key.type = KeyType::kUnsigned;
    } else if (spec.take('i')) {
      key.type = KeyType::kSigned;
    } else if (spec.take('f')) {
      key.type = KeyType::kFloat;
    } else if (!spec.take('b')) {
      return spec.wrong("a type is b, u, i or f");
    }
    if (key.type != KeyType::kBytes) {
      key.big_endian = spec.take(std::string_view("be"));
      if (!key.big_endian) spec.take(std::string_view("le"));
      PIF_TRY(check_number(spec, key));
    }
  }
  key.reverse = spec.take('r') || (options.reverse && !has_type);
  if (!spec.is_at_end()) return spec.wrong_rest();
  if (key.length == 0) return spec.wrong("a key has at least one byte");
  const std::uint64_t end = std::uint64_t{key.offset} + key.length;
  if (format.is_fixed() && end > format.record_length)
    return spec.wrong(fmt::format("records have {} bytes, so none up to byte {}", format.record_length, end));
  return key;
}

struct Letters {
  bool blanks = false, numeric = false, reverse = false;
  bool any() const { return blanks || numeric || reverse; }
};

Letters take_letters(Spec& spec) {
  Letters letters;
  for (bool more = true; more;) {
    more = false;
    if (spec.take('b')) more = letters.blanks = true;
    if (spec.take('n')) more = letters.numeric = true;
    if (spec.take('r')) more = letters.reverse = true;
  }
  return letters;
}

void apply(const Letters& first, const Letters& last, const KeyOptions& options, Key& key) {
  const bool own = first.any() || last.any();
  key.type = (own ? first.numeric || last.numeric : options.numeric) ? KeyType::kNumeric : KeyType::kText;
  key.reverse = own ? first.reverse || last.reverse : options.reverse;
  key.skip_first_blanks = own ? first.blanks : options.skip_blanks;
  key.skip_last_blanks = own ? last.blanks : options.skip_blanks;
}

// After "F".
Result<Key> by_field(Spec& spec, std::uint32_t field, const KeyOptions& options) {
  Key key;
  key.first_field = field;
  if (field == 0) return spec.wrong("fields are counted from 1");
  if (spec.take('.')) {
    PIF_TRY_VALUE(key.first_char, spec.number());
    if (key.first_char == 0) return spec.wrong("characters are counted from 1");
  }
  const Letters first = take_letters(spec);
  Letters last;
  if (spec.take(',')) {
    PIF_TRY_VALUE(key.last_field, spec.number());
    if (key.last_field == 0) return spec.wrong("fields are counted from 1");
    if (spec.take('.')) {
      PIF_TRY_VALUE(key.last_char, spec.number());
    }
    last = take_letters(spec);
  }
  if (!spec.is_at_end()) return spec.wrong_rest();
  apply(first, last, options, key);
  return key;
}

Result<Key> parse_key(const std::string& text, const KeyOptions& options, const Format& format) {
  Spec spec(text);
  PIF_TRY_VALUE(const std::uint32_t number, spec.number());
  return spec.take(':') ? by_position(spec, number, options, format) : by_field(spec, number, options);
}

// What only keys by field can heed: without one of these it must not be ignored, for the order would be another one
// than was asked for.
Status check_heeded(const KeyOptions& options, const std::vector<Key>& keys) {
  const bool have_field = std::any_of(keys.begin(), keys.end(), [](const Key& key) {
    return key.type == KeyType::kText || key.type == KeyType::kNumeric;
  });
  const char* const letter = options.numeric ? "-n" : options.skip_blanks ? "-b" : options.separator ? "-t" : nullptr;
  if (have_field || letter == nullptr) return {};
  return fail(Code::kInvalid,
              fmt::format("{} is for keys by field, F[.C][bnr][,F[.C][bnr]], and all keys here are OFF:LEN: leave it "
                          "away; a number at a place has a type, as in -k 8:4:u",
                          letter));
}

// The whole record.
Key whole_record(const KeyOptions& options, const Format& format) {
  Key key;
  key.reverse = options.reverse;
  key.skip_first_blanks = options.skip_blanks;
  if (options.numeric) {
    key.type = KeyType::kNumeric;
  } else if (format.is_fixed() && !options.skip_blanks) {
    key.type = KeyType::kBytes;
    key.length = format.record_length;
  }
  return key;
}

}  // namespace

Result<std::vector<Key>> parse_keys(const KeyOptions& options, const Format& format) {
  std::vector<Key> keys;
  for (const std::string& text : options.keys) {
    PIF_TRY_VALUE(keys.emplace_back(), parse_key(text, options, format));
  }
  if (keys.empty()) {
    keys.push_back(whole_record(options, format));
  } else {
    PIF_TRY(check_heeded(options, keys));
  }
  return keys;
}

}  // namespace pif::sort
