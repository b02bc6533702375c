#include "source_text.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace pif::tree {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// Finds the end of what is to be blanked, from `at`, which is past its start.
std::size_t end_of_quoted(std::string_view text, std::size_t at, char quote) {
  while (at < text.size() && text[at] != quote && text[at] != '\n') at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

std::size_t end_of_raw_string(std::string_view text, std::size_t at) {
  const std::size_t open = text.find('(', at);
  if (open == std::string_view::npos) return text.size();
  const std::string close = ")" + std::string(text.substr(at, open - at)) + "\"";
  const std::size_t end = text.find(close, open);
  return end == std::string_view::npos ? text.size() : end + close.size();
}

std::size_t end_of_line(std::string_view text, std::size_t at) {
  for (;;) {
    at = std::min(text.find('\n', at), text.size());
    if (at == text.size() || text[at - 1] != '\\') return at;
    ++at;  // a continued line
  }
}

// What starts at `at` and is not code ends here; `at` itself if it is code.
std::size_t end_of_not_code(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at);
  const char before = at == 0 ? '\n' : text[at - 1];
  if (rest.substr(0, 2) == "//") return end_of_line(text, at);
  if (rest.substr(0, 2) == "/*") {
    const std::size_t end = text.find("*/", at + 2);
    return end == std::string_view::npos ? text.size() : end + 2;
  }
  if (rest.substr(0, 2) == "R\"" && !is_word(before)) return end_of_raw_string(text, at + 2);
  if (rest[0] == '"') return end_of_quoted(text, at + 1, '"');
  if (rest[0] == '\'' && !is_word(before)) return end_of_quoted(text, at + 1, '\'');  // else a digit separator
  if (rest[0] == '#') {
    const std::size_t line = text.rfind('\n', at) == std::string_view::npos ? 0 : text.rfind('\n', at) + 1;
    if (std::all_of(text.begin() + static_cast<std::ptrdiff_t>(line), text.begin() + static_cast<std::ptrdiff_t>(at),
                    is_space))
      return end_of_line(text, at);
  }
  return at;
}

std::string_view word_before(std::string_view code, std::size_t end) {
  while (end > 0 && is_space(code[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && is_word(code[begin - 1])) --begin;
  return code.substr(begin, end - begin);
}

bool opens_scope(std::string_view head) {
  for (const std::string_view word : {"namespace", "class", "struct", "union", "enum", "extern"}) {
    const std::size_t at = head.find(word);
    if (at != std::string_view::npos && (at == 0 || !is_word(head[at - 1])) && head.find('(') == std::string_view::npos)
      return true;
  }
  return false;
}

}  // namespace

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::size_t line_at(std::string_view text, std::size_t offset) {
  return 1 +
         static_cast<std::size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
}

std::string code_only(std::string_view text) {
  std::string code(text);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = end_of_not_code(text, at);
    for (std::size_t i = at; i < end; ++i)
      if (code[i] != '\n') code[i] = ' ';
    at = std::max(end, at + 1);
  }
  return code;
}

std::vector<Include> includes_of(std::string_view text) {
  std::vector<Include> includes;
  std::size_t number = 0;
  for (std::string_view line : lines_of(text)) {
    ++number;
    const auto skip = [&line] { line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size())); };
    skip();
    if (line.substr(0, 1) != "#") continue;
    line.remove_prefix(1);
    skip();
    if (line.substr(0, 7) != "include") continue;
    line.remove_prefix(7);
    skip();
    if (line.empty() || (line[0] != '"' && line[0] != '<')) continue;
    const std::size_t end = line.find(line[0] == '"' ? '"' : '>', 1);
    if (end != std::string_view::npos)
      includes.push_back({number, std::string(line.substr(1, end - 1)), line[0] == '"'});
  }
  return includes;
}

std::vector<Function> functions_of(std::string_view code) {
  enum class Block { kScope, kFunction, kInside };
  std::vector<Function> functions;
  std::vector<Block> open;
  std::size_t head = 0, begin = 0;
  for (std::size_t at = 0; at < code.size(); ++at) {
    const bool inside = std::any_of(open.begin(), open.end(), [](Block b) { return b != Block::kScope; });
    if (code[at] == '{') {
      const bool initialises = at > 0 && (is_word(code[at - 1]) || code[at - 1] == '>');
      const std::string_view text = code.substr(head, at - head);
      const bool function = !inside && !initialises && text.find('(') != std::string_view::npos && !opens_scope(text);
      open.push_back(function ? Block::kFunction : !inside && opens_scope(text) ? Block::kScope : Block::kInside);
      if (function) begin = head + std::min(text.find_first_not_of(" \n"), text.size());
      if (open.back() != Block::kInside) head = at + 1;
    } else if (code[at] == '}' && !open.empty()) {
      if (open.back() == Block::kFunction)
        functions.push_back({line_at(code, begin), line_at(code, at) - line_at(code, begin) + 1});
      if (open.back() != Block::kInside) head = at + 1;
      open.pop_back();
    } else if (code[at] == ';' && !inside) {
      head = at + 1;
    }
  }
  return functions;
}

std::vector<Call> calls_of(std::string_view code) {
  static const std::set<std::string_view> kNotTypes = {"return", "else", "do", "throw", "case", "and", "or", "not"};
  std::vector<Call> calls;
  for (std::size_t at = code.find('('); at != std::string_view::npos; at = code.find('(', at + 1)) {
    std::size_t begin = at;
    while (begin > 0 && (is_word(code[begin - 1]) || code[begin - 1] == ':')) --begin;
    if (begin == at || (begin > 0 && (code[begin - 1] == '.' || code[begin - 1] == '>' || code[begin - 1] == '~')))
      continue;
    const bool touches = begin > 0 && !is_space(code[begin - 1]);
    const std::string_view before = touches ? std::string_view() : word_before(code, begin);
    if (!before.empty() && kNotTypes.count(before) == 0) continue;  // "Type name(": a declaration
    calls.push_back({line_at(code, begin), std::string(code.substr(begin, at - begin))});
  }
  return calls;
}

}  // namespace pif::tree
