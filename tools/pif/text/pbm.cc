#include "text/pbm.h"

#include "pif/base/assert.h"

namespace pif::cli {

PbmHeader::State PbmHeader::take(char c) {
  constexpr std::string_view kMagic = "P4";
  PIF_ASSERT(number_ < numbers_.size(), number_);
  if (magic_ < kMagic.size()) return c == kMagic[magic_++] ? State::kMore : State::kWrong;
  const bool is_line_end = c == '\n' || c == '\r';
  if (in_comment_ && !is_line_end) return State::kMore;
  in_comment_ = c == '#';
  if (in_comment_) return State::kMore;
  if (is_line_end || c == ' ' || c == '\t') return take_blank();
  return c >= '0' && c <= '9' && has_blank_ ? take_digit(c) : State::kWrong;
}

PbmHeader::State PbmHeader::take_blank() {
  has_blank_ = true;
  if (!has_digits_) return State::kMore;
  has_digits_ = false;
  return ++number_ == numbers_.size() ? State::kWhole : State::kMore;
}

PbmHeader::State PbmHeader::take_digit(char c) {
  has_digits_ = true;
  std::uint64_t& number = numbers_[number_];
  number = number * 10 + static_cast<std::uint64_t>(c - '0');
  return number <= UINT32_MAX ? State::kMore : State::kWrong;
}

std::optional<PbmHeader> parse_pbm(std::string_view text) {
  PbmHeader header;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto state = header.take(text[i]);
    if (state == PbmHeader::State::kWhole && i + 1 == text.size()) return header;
    if (state != PbmHeader::State::kMore) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace pif::cli
