// What docs/PROTOCOL.md names is there: messages and their fields in the .proto files, constants in the code.
#include <regex>

#include "rules.h"
#include "source_text.h"

namespace pif::tree {
namespace {

using Messages = std::map<std::string, std::set<std::string>>;  // name: its fields

bool is_of(const std::string& path, std::string_view end) {
  return path.size() > end.size() && path.compare(path.size() - end.size(), end.size(), end) == 0;
}

// Of one .proto file. Fields of a nested message are its own.
void add_messages(const std::string& text, Messages& messages) {
  static const std::regex kToken(R"((message|enum|oneof)\s+(\w+)\s*\{|(\})|(\w+)\s*=\s*\d+\s*;)");
  std::string code = text;
  for (std::size_t at = code.find("//"); at != std::string::npos; at = code.find("//", at))
    code.erase(at, code.find('\n', at) - at);
  std::vector<std::string> open;  // names of messages, empty for what is none
  for (std::sregex_iterator at(code.begin(), code.end(), kToken), end; at != end; ++at) {
    const std::smatch& token = *at;
    if (token[3].matched) {
      if (!open.empty()) open.pop_back();
    } else if (token[4].matched) {
      for (auto name = open.rbegin(); name != open.rend(); ++name)
        if (!name->empty()) {
          messages[*name].insert(token[4]);
          break;
        }
    } else {
      open.push_back(token[1] == "message" ? token[2].str() : "");
      if (!open.back().empty()) messages[open.back()];
    }
  }
}

bool is_word_in_code(const Tree& tree, const std::string& word) {
  const std::regex whole("\\b" + word + "\\b");
  for (const auto& [path, text] : tree)
    if ((is_of(path, ".h") || is_of(path, ".cc")) && !path.starts_with("test/") &&
        text.find(word) != std::string::npos && std::regex_search(text, whole))
      return true;
  return false;
}

// What is wrong with a name that is written `so`; empty if nothing.
std::string judge(const Tree& tree, const Messages& messages, const std::string& name) {
  static const std::regex kMessage(R"(([A-Z][a-z]\w*)(\.(\w+))?(\{\w+\})?)");
  static const std::regex kConstant(R"(k[A-Z]\w*)");
  std::smatch parts;
  if (std::regex_match(name, kConstant))
    return is_word_in_code(tree, name) ? "" : "no constant of the code is called " + name;
  if (!std::regex_match(name, parts, kMessage)) return "";
  const auto message = messages.find(parts[1]);
  if (message == messages.end()) return "no .proto file has a message " + parts[1].str();
  if (parts[3].matched && message->second.count(parts[3]) == 0)
    return parts[1].str() + " has no field " + parts[3].str();
  return "";
}

}  // namespace

Offences check_protocol(const Tree& tree) {
  static const std::string kDocument = "docs/PROTOCOL.md";
  const auto document = tree.find(kDocument);
  if (document == tree.end()) return {{kDocument, 1, "is not there"}};
  Messages messages;
  for (const auto& [path, text] : tree)
    if (is_of(path, ".proto")) add_messages(text, messages);
  Offences offences;
  std::size_t number = 0;
  for (const std::string_view line : lines_of(document->second)) {
    ++number;
    for (std::size_t at = line.find('`'); at != std::string_view::npos; at = line.find('`', at)) {
      const std::size_t end = line.find('`', at + 1);
      if (end == std::string_view::npos) break;
      const std::string what = judge(tree, messages, std::string(line.substr(at + 1, end - at - 1)));
      if (!what.empty()) offences.push_back({kDocument, number, what});
      at = end + 1;
    }
  }
  return offences;
}

}  // namespace pif::tree
