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
  std::string prefix() const { return fmt::format("key \"{}\": ", text_); }  // of messages
  tl::unexpected<Error> wrong(std::string_view what) const {
    return fail(Code::kInvalid, fmt::format("{}{}; a key is OFF:LEN[:b|u|i|f[le|be]][r], or F[.C][OPTS][,F[.C][OPTS]] "
                                            "with OPTS of bdfghiMnrV",
                                            prefix(), what));
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

// By which letter each is asked for; in the order of messages.
struct Letter {
  char letter;
  bool KeyLetters::*flag;
};
constexpr Letter kLetters[] = {{'b', &KeyLetters::skip_blanks},   {'d', &KeyLetters::only_dictionary},
                               {'f', &KeyLetters::fold},          {'g', &KeyLetters::general_numeric},
                               {'h', &KeyLetters::human_numeric}, {'i', &KeyLetters::only_printing},
                               {'M', &KeyLetters::month},         {'n', &KeyLetters::numeric},
                               {'r', &KeyLetters::reverse},       {'V', &KeyLetters::version}};

std::string to_text(const KeyLetters& letters) {
  std::string text;
  for (const Letter& one : kLetters)
    if (letters.*one.flag) text += one.letter;
  return text;
}

KeyLetters take_letters(Spec& spec) {
  KeyLetters letters;
  for (bool more = true; more;) {
    more = false;
    for (const Letter& one : kLetters)
      if (spec.take(one.letter)) more = letters.*one.flag = true;
  }
  return letters;
}

KeyLetters either(const KeyLetters& a, const KeyLetters& b) {
  KeyLetters both;
  for (const Letter& one : kLetters) both.*one.flag = a.*one.flag || b.*one.flag;
  return both;
}

// A text has one value. As in sort(1), -d and -i go with -V, and -f goes with all. prefix: of the message.
Status check_compatible(KeyLetters letters, std::string_view prefix) {
  letters.only_printing = letters.only_printing && !letters.only_dictionary;
  const bool is_text = letters.version || letters.only_dictionary || letters.only_printing;
  if (letters.numeric + letters.general_numeric + letters.human_numeric + letters.month + is_text <= 1) return {};
  letters.skip_blanks = letters.reverse = false;
  return fail(Code::kInvalid,
              fmt::format("{}options '-{}' are incompatible: a key is compared in one way", prefix, to_text(letters)));
}

KeyType type_of(const KeyLetters& letters) {
  if (letters.numeric) return KeyType::kNumeric;
  if (letters.general_numeric) return KeyType::kGeneralNumeric;
  if (letters.human_numeric) return KeyType::kHumanNumeric;
  if (letters.month) return KeyType::kMonth;
  return letters.version ? KeyType::kVersion : KeyType::kText;
}

// All but where blanks are skipped. No letters contradict one another.
void apply(const KeyLetters& letters, Key& key) {
  key.type = type_of(letters);
  key.reverse = letters.reverse;
  key.fold = letters.fold;
  key.ignored = letters.only_dictionary ? Ignored::kNondictionary
                : letters.only_printing ? Ignored::kNonprinting
                                        : Ignored::kNone;
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
  const KeyLetters first = take_letters(spec);
  KeyLetters last;
  if (spec.take(',')) {
    PIF_TRY_VALUE(key.last_field, spec.number());
    if (key.last_field == 0) return spec.wrong("fields are counted from 1");
    if (spec.take('.')) {
      PIF_TRY_VALUE(key.last_char, spec.number());
    }
    last = take_letters(spec);
  }
  if (!spec.is_at_end()) return spec.wrong_rest();
  const KeyLetters own = either(first, last);
  const bool inherits = to_text(own).empty();
  const KeyLetters& letters = inherits ? static_cast<const KeyLetters&>(options) : own;
  PIF_TRY(check_compatible(letters, spec.prefix()));
  apply(letters, key);
  key.skip_first_blanks = inherits ? options.skip_blanks : first.skip_blanks;
  key.skip_last_blanks = inherits ? options.skip_blanks : last.skip_blanks;
  return key;
}

// Of a CSV record.
Result<Key> by_column(Spec& spec, std::uint32_t column, const KeyOptions& options) {
  Key key;
  key.is_column = true;
  key.first_field = column;
  if (column == 0) return spec.wrong("columns are counted from 1");
  if (!spec.take(':') && spec.take(',')) {
    PIF_TRY_VALUE(const std::uint32_t last, spec.number());
    if (last != column) return spec.wrong("a key of CSV text is one column");
  }
  const KeyLetters own = take_letters(spec);
  if (!spec.is_at_end()) return spec.wrong_rest();
  const KeyLetters& letters = to_text(own).empty() ? static_cast<const KeyLetters&>(options) : own;
  PIF_TRY(check_compatible(letters, spec.prefix()));
  apply(letters, key);
  key.skip_first_blanks = letters.skip_blanks;
  return key;
}

Result<Key> parse_key(const std::string& text, const KeyOptions& options, const Format& format) {
  Spec spec(text);
  PIF_TRY_VALUE(const std::uint32_t number, spec.number());
  if (options.csv) return by_column(spec, number, options);
  return spec.take(':') ? by_position(spec, number, options, format) : by_field(spec, number, options);
}

// What only keys by field can heed: without one of these it must not be ignored, for the order would be another one
// than was asked for.
Status check_heeded(const KeyOptions& options, const std::vector<Key>& keys) {
  const bool have_field = std::any_of(keys.begin(), keys.end(), [](const Key& key) { return is_by_field(key.type); });
  KeyLetters letters = options;
  letters.reverse = false;
  const std::string unheeded = to_text(letters) + (options.separator ? "t" : "");
  if (have_field || unheeded.empty()) return {};
  return fail(
      Code::kInvalid,
      fmt::format("-{} is for keys by field, F[.C][OPTS][,F[.C][OPTS]], and all keys here are OFF:LEN: leave it "
                  "away; a number at a place has a type, as in -k 8:4:u",
                  unheeded));
}

Status check_ending(const Format& format) {
  if (format.kind == RecordKind::kDelimited && format.delimiter == 0) return {};
  return fail(Code::kInvalid,
              "-z is for a file whose records end in a zero byte, and it does not make them do so: leave it away, or "
              "put the file with pif put --delimited '\\0'");
}

// The whole record.
Result<Key> whole_record(const KeyOptions& options, const Format& format) {
  PIF_TRY(check_compatible(options, {}));
  Key key;
  apply(options, key);
  key.skip_first_blanks = options.skip_blanks;
  KeyLetters letters = options;
  letters.reverse = false;
  if (format.is_fixed() && to_text(letters).empty()) {
    key.type = KeyType::kBytes;
    key.length = format.record_length;
  }
  return key;
}

}  // namespace

Result<std::vector<Key>> parse_keys(const KeyOptions& options, const Format& format) {
  if (options.null_ended) PIF_TRY(check_ending(format));
  std::vector<Key> keys;
  for (const std::string& text : options.keys) {
    PIF_TRY_VALUE(keys.emplace_back(), parse_key(text, options, format));
  }
  if (keys.empty()) {
    PIF_TRY_VALUE(keys.emplace_back(), whole_record(options, format));
  } else {
    PIF_TRY(check_heeded(options, keys));
  }
  return keys;
}

}  // namespace pif::sort
