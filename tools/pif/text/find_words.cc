#include "text/find_words.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "text/text.h"

namespace pif::cli {
namespace {

constexpr std::array<std::string_view, 4> kWithValue = {"name", "type", "size", "newer"};
constexpr std::array<std::string_view, 2> kAlone = {"print", "print0"};
constexpr std::string_view kNames = "{}";

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "name" of "-name" and "--name".
std::string_view option_in(std::string_view word) {
  if (!word.starts_with('-')) return {};
  word.remove_prefix(word.starts_with("--") ? 2 : 1);
  return word;
}

}  // namespace

void keep_find_words(std::vector<std::string>& arguments, std::size_t at) {
  std::vector<std::string> out(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(at));
  for (std::size_t i = at; i < arguments.size(); ++i) {
    const std::string_view option = option_in(arguments[i]);
    const bool has_value = i + 1 < arguments.size();
    if (is_one_of(kAlone, option)) {
      out.push_back(fmt::format("--{}", option));
    } else if (is_one_of(kWithValue, option)) {
      out.push_back(fmt::format("--{}", option) + (has_value ? "=" + arguments[i + 1] : ""));
      ++i;
    } else if (option == "exec") {
      std::string joined = "--exec=";
      for (bool goes_on = has_value; goes_on;) {
        const std::string& word = arguments[++i];
        joined += word + '\0';
        goes_on = i + 1 < arguments.size() && word != ";" && !(word == "+" && arguments[i - 1] == kNames);
      }
      out.push_back(std::move(joined));
    } else {
      out.push_back(arguments[i]);
    }
  }
  arguments = std::move(out);
}

Result<ExecPlan> parse_exec(const std::string& joined) {
  ExecPlan plan;
  for (std::size_t begin = 0; begin < joined.size();) {
    const std::size_t end = std::min(joined.find('\0', begin), joined.size());
    plan.words.push_back(joined.substr(begin, end - begin));
    begin = end + 1;
  }
  const std::string last = plan.words.empty() ? "" : plan.words.back();
  if (!plan.words.empty()) plan.words.pop_back();
  plan.many = last == "+";
  const bool ends_with_names = !plan.words.empty() && plan.words.back() == kNames;
  if ((last != ";" && !plan.many) || plan.words.empty() || (plan.many && (!ends_with_names || plan.words.size() == 1)))
    return fail(Code::kInvalid,
                "-exec takes a command that ends with {} + (many names at once) or with \\; (once for each name)");
  if (plan.many) plan.words.pop_back();
  return plan;
}

std::vector<std::string> words_for(const ExecPlan& plan, const std::vector<std::string>& paths) {
  std::vector<std::string> words = plan.words;
  if (plan.many) {
    words.insert(words.end(), paths.begin(), paths.end());
    return words;
  }
  for (std::string& word : words) {
    for (std::size_t at = word.find(kNames); at != std::string::npos; at = word.find(kNames, at + paths[0].size()))
      word.replace(at, kNames.size(), paths[0]);
  }
  return words;
}

Result<SizeTest> parse_size(const std::string& text) {
  constexpr std::string_view kUnits = "ckMGT";
  SizeTest test;
  std::string_view number = text;
  if (number.starts_with('+') || number.starts_with('-')) {
    test.sign = number[0];
    number.remove_prefix(1);
  }
  std::size_t unit = number.empty() ? std::string_view::npos : kUnits.find(number.back());
  if (unit != std::string_view::npos) number.remove_suffix(1);
  if (unit == std::string_view::npos) unit = 0;
  const auto value = parse_number(number, "-size");
  if (!value || *value > UINT64_MAX >> (10 * unit))
    return fail(Code::kInvalid,
                fmt::format("-size takes [+-]N[ckMGT], such as +10M for more than ten MiB, not '{}'", text));
  test.bytes = *value << (10 * unit);
  return test;
}

}  // namespace pif::cli
