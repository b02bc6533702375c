#include "names/mode_change.h"

#include <algorithm>

#include <fmt/format.h>

namespace pif::cli {
namespace {

constexpr std::uint32_t kAll = 07777;
constexpr std::uint32_t kSetIds = 06000, kSticky = 01000;
constexpr std::uint32_t kExecute = 0111;
constexpr std::size_t kOctalDigitsMax = 4;

tl::unexpected<Error> no_mode(std::string_view text) {
  return fail(Code::kInvalid, fmt::format("'{}' is no mode; write it like 0750, or like u+w,go=rX", text));
}

std::uint32_t who_of(char letter) {
  return letter == 'u' ? 04700 : letter == 'g' ? 02070 : letter == 'o' ? 01007 : kAll;
}

}  // namespace

Result<ModeChange> ModeChange::parse(std::string_view text) {
  ModeChange out;
  const bool octal = !text.empty() && text.find_first_not_of("01234567") == std::string_view::npos;
  if (octal && text.size() <= kOctalDigitsMax) {
    std::uint32_t mode = 0;
    for (const char c : text) mode = mode * 8 + static_cast<std::uint32_t>(c - '0');
    for (const char who : {'u', 'g', 'o'}) {
      const std::uint32_t theirs = who_of(who);
      const std::uint32_t shift = who == 'u' ? 6 : who == 'g' ? 3 : 0;
      out.steps_.push_back({theirs, '=', mode >> shift & 7u, mode & theirs & ~0777u, false});
    }
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
    if (c == 'X')
      step.search_if_executable = true;
    else if (c == 's')
      step.special |= step.who & kSetIds;
    else if (c == 't')
      step.special |= kSticky;
    else if (bit != std::string_view::npos)
      step.bits |= 1u << bit;
    else
      return no_mode(all);
  }
  return step;
}

std::uint32_t ModeChange::apply(std::uint32_t mode, bool is_folder) const {
  for (const Step& step : steps_) {
    const bool search = step.search_if_executable && (is_folder || (mode & kExecute) != 0);
    const std::uint32_t bits = ((step.bits | (search ? 1u : 0u)) * 0111u & step.who) | step.special;
    if (step.how == '=') mode = (mode & ~step.who) | bits;
    if (step.how == '+') mode |= bits;
    if (step.how == '-') mode &= ~bits;
  }
  return mode;
}

}  // namespace pif::cli
