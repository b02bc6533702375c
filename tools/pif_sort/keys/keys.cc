#include "keys/keys.h"

#include <algorithm>

#include <fmt/format.h>

#include "keys/characters.h"
#include "keys/key_spec.h"
#include "pif/base/assert.h"
#include "pif/tool/csv.h"

namespace pif::sort {
namespace {

constexpr std::size_t kCountedMin = 1024;  // of shorter keys nobody counts the zeros
constexpr char kEnd = '\0';                // in text, 00 ff stands for the byte 00, and 00 00 for the end

void add_escaped(std::string_view text, std::string& out) {
  for (const char c : text) {
    out += c;
    if (c == '\0') out += '\xff';
  }
  out += kEnd;
  out += kEnd;
}

bool is_binary_number(KeyType type) {
  return type == KeyType::kUnsigned || type == KeyType::kSigned || type == KeyType::kFloat;
}

bool is_ignored(char c, Ignored ignored) {
  const bool is_printing = c >= ' ' && c <= '~';
  if (ignored != Ignored::kNondictionary) return ignored == Ignored::kNonprinting && !is_printing;
  return !is_blank(c) && !is_digit(c) && !is_letter(c);
}

// The text as the key sees it.
std::string changed_text(const Key& key, std::string_view text) {
  std::string out;
  for (const char c : text)
    if (!is_ignored(c, key.ignored)) out += key.fold ? upper(c) : c;
  return out;
}

void add_value(KeyType type, std::string_view text, bool is_end_needed, std::string& out) {
  switch (type) {
    case KeyType::kNumeric: return add_number(text, out);
    case KeyType::kGeneralNumeric: return add_general_number(text, out);
    case KeyType::kHumanNumeric: return add_human_number(text, out);
    case KeyType::kMonth: return add_month(text, out);
    case KeyType::kVersion: return add_version(text, out);
    default: break;
  }
  PIF_ASSERT(type == KeyType::kText, static_cast<int>(type));
  if (is_end_needed) return add_escaped(text, out);
  out += text;
}

// Big-endian bytes of an integer or float, changed so that they compare as it does.
void order_bytes(KeyType type, std::span<char> big_endian) {
  const bool negative = (big_endian[0] & '\x80') != 0;
  if (type == KeyType::kFloat && negative) {
    for (char& c : big_endian) c = static_cast<char>(~c);
  } else if (type != KeyType::kUnsigned) {
    big_endian[0] = static_cast<char>(big_endian[0] ^ '\x80');
  }
}

// Text of which every character counts, and as it is.
bool is_as_it_is(const Key& key) { return key.type == KeyType::kText && key.ignored == Ignored::kNone && !key.fold; }

}  // namespace

bool is_ended(Bytes record, const Format& format) {
  return format.kind != RecordKind::kDelimited ||
         (!record.empty() && record.back() == static_cast<std::byte>(format.delimiter));
}

Bytes without_terminator(Bytes record, const Format& format) {
  const bool has_one = format.kind == RecordKind::kDelimited && is_ended(record, format);
  return has_one ? record.first(record.size() - 1) : record;
}

Status KeyMaker::add_position(const Key& key, Bytes record, std::string& out) const {
  const std::size_t begin = std::min<std::size_t>(key.offset, record.size());
  const std::size_t size = std::min<std::size_t>(key.length, record.size() - begin);
  const auto* const bytes = reinterpret_cast<const char*>(record.data()) + begin;
  const std::size_t from = out.size();
  if (!is_binary_number(key.type)) {
    if (format_.is_fixed()) {
      out.append(bytes, size);
    } else {
      add_escaped({bytes, size}, out);
    }
  } else {
    if (size < key.length)
      return fail(Code::kInvalid, fmt::format("a record of {} bytes has no number at bytes {} to {}", record.size(),
                                              key.offset, std::uint64_t{key.offset} + key.length));
    out.append(bytes, size);
    if (!key.big_endian) std::reverse(out.begin() + static_cast<std::ptrdiff_t>(from), out.end());
    order_bytes(key.type, {out.data() + from, size});
  }
  if (key.reverse) complement(out, from);
  return {};
}

Status KeyMaker::make_full_key(Bytes record, std::uint64_t number, std::string& out) const {
  if (plain_offset_) {
    out.assign(reinterpret_cast<const char*>(record.data()) + *plain_offset_, *fixed_length_);
  } else {
    PIF_TRY(make_key(record, out));
  }
  if (!fixed_length_) {  // else what follows a key would count where another one is longer
    std::string escaped;
    add_escaped(out, escaped);
    out = std::move(escaped);
  }
  const std::uint64_t big_endian = __builtin_bswap64(number);
  out.append(reinterpret_cast<const char*>(&big_endian), sizeof big_endian);
  return {};
}

std::uint64_t KeyMaker::full_key_bytes(std::string_view key) const {
  if (fixed_length_) return *fixed_length_ + kNumberBytes;
  const bool is_short = key.size() < kCountedMin;
  const auto escaped = is_short ? key.size() : static_cast<std::uint64_t>(std::count(key.begin(), key.end(), '\0'));
  return key.size() + escaped + 2 + kNumberBytes;
}

void KeyMaker::add_text(const Key& key, std::string_view text, bool is_last, std::string& out) const {
  const std::size_t from = out.size();
  const bool is_end_needed = !is_last || key.reverse;
  if (key.fold || key.ignored != Ignored::kNone) {
    add_value(key.type, changed_text(key, text), is_end_needed, out);
  } else {
    add_value(key.type, text, is_end_needed, out);
  }
  if (key.reverse) complement(out, from);
}

// ---- fields, as sort(1) finds them --------------------------------------------------------------------------------

std::size_t KeyMaker::field_begin(const Key& key, std::string_view record) const {
  std::size_t at = 0;
  for (std::uint32_t field = 1; field < key.first_field && at < record.size(); ++field) {
    if (separator_) {
      while (at < record.size() && record[at] != *separator_) ++at;
      if (at < record.size()) ++at;
    } else {
      while (at < record.size() && is_blank(record[at])) ++at;
      while (at < record.size() && !is_blank(record[at])) ++at;
    }
  }
  while (key.skip_first_blanks && at < record.size() && is_blank(record[at])) ++at;
  return std::min(record.size(), at + key.first_char - 1);
}

std::size_t KeyMaker::field_end(const Key& key, std::string_view record) const {
  if (key.last_field == 0) return record.size();
  // To the start of the last field if a character of it is given, else to its end.
  const std::uint32_t whole_fields = key.last_char == 0 ? key.last_field : key.last_field - 1;
  std::size_t at = 0;
  for (std::uint32_t field = 0; field < whole_fields && at < record.size(); ++field) {
    if (separator_) {
      while (at < record.size() && record[at] != *separator_) ++at;
      const bool more = field + 1 < whole_fields || key.last_char != 0;
      if (at < record.size() && more) ++at;
    } else {
      while (at < record.size() && is_blank(record[at])) ++at;
      while (at < record.size() && !is_blank(record[at])) ++at;
    }
  }
  if (key.last_char == 0) return at;
  while (key.skip_last_blanks && at < record.size() && is_blank(record[at])) ++at;
  return std::min(record.size(), at + key.last_char);
}

std::string_view KeyMaker::field_text(const Key& key, std::string_view record) const {
  const std::size_t begin = field_begin(key, record);
  const std::size_t end = field_end(key, record);
  return end > begin ? record.substr(begin, end - begin) : std::string_view();
}

std::string_view KeyMaker::column_text(const Key& key, std::string_view record, std::string& buffer) const {
  const std::string_view field = tool::csv_field(tool::without_line_break(record), key.first_field - 1, *separator_);
  std::string_view text = tool::csv_text(field, buffer);
  while (key.skip_first_blanks && !text.empty() && is_blank(text.front())) text.remove_prefix(1);
  return text;
}

std::string_view KeyMaker::text_of(Bytes record) const {
  const Bytes seen = without_terminator(record, format_);
  const std::string_view text(reinterpret_cast<const char*>(seen.data()), seen.size());
  const Key& key = keys_.front();
  if (key.type == KeyType::kText) return field_text(key, text);
  return text.substr(std::min<std::size_t>(key.offset, text.size()), key.length);
}

// -------------------------------------------------------------------------------------------------------------------

Status KeyMaker::make_key(Bytes record, std::string& out) const {
  out.clear();
  const Bytes seen = without_terminator(record, format_);
  const std::string_view text(reinterpret_cast<const char*>(seen.data()), seen.size());
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    const Key& key = keys_[i];
    if (is_by_field(key.type)) {
      std::string buffer;
      const std::string_view field = key.is_column ? column_text(key, text, buffer) : field_text(key, text);
      add_text(key, field, i + 1 == keys_.size(), out);
    } else {
      PIF_TRY(add_position(key, seen, out));
    }
  }
  return {};
}

Result<KeyMaker> KeyMaker::make(const KeyOptions& options, const Format& format) {
  KeyMaker maker;
  maker.format_ = format;
  maker.separator_ = options.separator;
  if (options.csv && !maker.separator_) maker.separator_ = ',';
  PIF_TRY_VALUE(maker.keys_, parse_keys(options, format));
  const Key& only = maker.keys_.front();
  maker.is_text_ = maker.keys_.size() == 1 && (only.type == KeyType::kBytes || is_as_it_is(only)) && !only.is_column;
  const auto by_position = [](const Key& key) { return !is_by_field(key.type); };
  if (!format.is_fixed() || !std::all_of(maker.keys_.begin(), maker.keys_.end(), by_position)) return maker;
  std::uint64_t length = 0;
  for (const Key& key : maker.keys_) length += key.length;
  if (length > UINT32_MAX)
    return fail(Code::kInvalid,
                fmt::format("the keys of a record have {} bytes together; {} is the most", length, UINT32_MAX));
  maker.fixed_length_ = static_cast<std::uint32_t>(length);
  const Key& first = maker.keys_.front();
  const bool is_plain = maker.keys_.size() == 1 && first.type == KeyType::kBytes && !first.reverse;
  if (is_plain) maker.plain_offset_ = first.offset;
  return maker;
}

}  // namespace pif::sort
