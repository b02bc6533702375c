#include "names/mode_change.h"

#include <algorithm>

#include <fmt/format.h>

namespace pif::cli {
namespace {

constexpr std::uint32_t kAll = 0777;
constexpr std::uint32_t kExecute = 0111;
constexpr std::size_t kOctalDigitsMax = 4;

tl::unexpected<Error> no_mode(std::string_view text) {
  return fail(Code::kInvalid, fmt::format("'{}' is no mode; write it like 0750, or like u+w,go=rX", text));
}

std::uint32_t who_of(char letter) { return letter == 'u' ? 0700 : letter == 'g' ? 0070 : letter == 'o' ? 0007 : kAll; }

}  // namespace

Result<ModeChange> ModeChange::parse(std::string_view text) {
  ModeChange out;
  const bool octal = !text.empty() && text.find_first_not_of("01234567") == std::string_view::npos;
  if (octal && text.size() <= kOctalDigitsMax) {
    std::uint32_t mode = 0;
    for (const char c : text) mode = mode * 8 + static_cast<std::uint32_t>(c - '0');
    if (mode > kAll) return fail(Code::kInvalid, fmt::format("the mode {} has more than permission bits (0777)", text));
    for (const std::uint32_t shift : {6u, 3u, 0u}) out.steps_.push_back({7u << shift, '=', mode >> shift & 7u, false});
    return out;
  }
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    PIF_TRY_VALUE(out.steps_.emplace_back(), parse_step(rest.substr(0, comma), text));
    if (comma == std::string_view::npos) return out;
    rest.remove_prefix(comma + 1);
  }
}

Result<ModeChange::Step> ModeChange::parse_step(std::string_view text, std::string_view all) {
  Step step;
  const std::size_t how = text.find_first_of("+-=");
  if (how == std::string_view::npos) return no_mode(all);
  for (const char c : text.substr(0, how)) {
    if (std::string_view("ugoa").find(c) == std::string_view::npos) return no_mode(all);
    step.who |= who_of(c);
  }
  if (step.who == 0) step.who = kAll;
  step.how = text[how];
  for (const char c : text.substr(how + 1)) {
    const std::size_t bit = std::string_view("xwr").find(c);
    if (bit == std::string_view::npos && c != 'X') return no_mode(all);
    if (c == 'X')
      step.search_if_executable = true;
    else
      step.bits |= 1u << bit;
  }
  return step;
}

std::uint32_t ModeChange::apply(std::uint32_t mode, bool is_folder) const {
  for (const Step& step : steps_) {
    const bool search = step.search_if_executable && (is_folder || (mode & kExecute) != 0);
    const std::uint32_t bits = (step.bits | (search ? 1u : 0u)) * 0111u & step.who;
    if (step.how == '=') mode = (mode & ~step.who) | bits;
    if (step.how == '+') mode |= bits;
    if (step.how == '-') mode &= ~bits;
  }
  return mode;
}

}  // namespace pif::cli
