#include "completion/candidates.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "command/dispatch.h"

namespace pif::cli {
namespace {

// The values that an option can have, where there is a list of them: type names have them in braces.
std::vector<std::string> values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{'), close = type.find('}');
  std::vector<std::string> values;
  if (open == std::string::npos || close == std::string::npos || close < open) return values;
  for (std::size_t begin = open + 1; begin <= close;) {
    const std::size_t end = std::min(type.find(',', begin), close);
    values.push_back(type.substr(begin, end - begin));
    begin = end + 1;
  }
  return values;
}

bool has_word(const std::string& text, const char* word) { return text.find(word) != std::string::npos; }

// By the word that stands for it in the help.
NameKind kind_of(const CLI::Option& option) {
  const std::string type = option.get_type_name(), name = option.get_positional() ? option.get_name(true) : "";
  const std::string text =
      has_word(type, "TARGET") || has_word(type, "LOCAL") || has_word(type, "PATH") ? type : name + " " + type;
  if (has_word(text, "LOCAL"))
    return has_word(text, "TARGET") || has_word(text, "FILE") ? NameKind::kPathOrLocal : NameKind::kLocal;
  if (has_word(text, "DIR")) return NameKind::kLocalFolder;
  for (const char* word : {"PATH", "FILE", "FOLDER", "SOURCE", "TARGET"}) {
    if (has_word(text, word)) return NameKind::kPath;
  }
  return NameKind::kNone;
}

bool must_have_value(const CLI::Option& option) { return option.get_items_expected_min() > 0; }

// "--pif", "=", "DIR" and "pif", ":", "/a", as a shell splits them, without what lies between.
std::vector<std::string> joined(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (const std::string& word : words) {
    if (word == "=" && !out.empty() && out.back().starts_with("--")) continue;
    const bool is_prefix = word == ":" && !out.empty() && out.back() == "pif";
    if (is_prefix)
      out.pop_back();
    else
      out.push_back(word);
  }
  const bool ends_open = !words.empty() && (words.back() == "=" || words.back() == ":");
  if (ends_open || out.empty()) out.emplace_back();
  return out;
}

// A walk along the words that are there, to what may come next.
class Walk {
 public:
  Walk(const CLI::App& app, const std::vector<std::string>& tools) : app_(app), tools_(tools), here_(&app) {}

  Candidates run(const std::vector<std::string>& words) {
    for (std::size_t i = 0; i + 1 < words.size(); ++i) pass(words[i]);
    const std::string& last = words.back();
    out_.name = last;
    if (open_ != nullptr) {
      offer_values(*open_, last, "");
    } else if (!out_.tool.empty() || is_other_program_) {
      if (is_other_program_ || !last.starts_with('-')) out_.tool.clear();
      out_.names = is_other_program_ ? NameKind::kPathOrLocal : NameKind::kPath;
    } else if (last.starts_with("--") && last.find('=') != std::string::npos) {
      const std::string name = last.substr(0, last.find('='));
      out_.name = last.substr(name.size() + 1);
      if (const CLI::Option* option = find_option(name)) offer_values(*option, out_.name, name + "=");
    } else if (last.starts_with('-')) {
      offer_options(last);
    } else {
      offer_words(last);
    }
    return std::move(out_);
  }

 private:
  void pass(const std::string& word) {
    if (open_ != nullptr) {
      if (open_->check_name("--pif")) out_.where = word;
      open_ = nullptr;
    } else if (!out_.tool.empty() || is_other_program_) {
      return;
    } else if (word.starts_with("--pif=")) {
      out_.where = word.substr(std::string_view("--pif=").size());
    } else if (word.starts_with('-') && word.size() > 1) {
      const CLI::Option* const option = find_option(word);
      if (option != nullptr && must_have_value(*option)) open_ = option;
    } else if (!here_->get_subcommands([&](const CLI::App* one) { return one->check_name(word); }).empty()) {
      here_ = here_->get_subcommand(word);
    } else if (here_ == &app_) {
      out_.tool = word;
    } else {
      is_other_program_ = here_->get_name() == "run";
      ++operands_;
    }
  }

  // Those of find may have one dash.
  const CLI::Option* find_option(const std::string& word) const {
    const CLI::Option* const option = here_->get_option_no_throw(word);
    return option != nullptr || here_->get_name() != "find" ? option : here_->get_option_no_throw("-" + word);
  }

  void offer(const std::string& word, const std::string& description, const std::string& start) {
    if (word.starts_with(start)) out_.words.push_back({word, description});
  }
  void offer_options(const std::string& start) {
    for (const CLI::Option* option : here_->get_options()) {
      for (const std::string& name : option->get_lnames()) offer("--" + name, option->get_description(), start);
      if (start == "-") {
        for (const std::string& name : option->get_snames()) offer("-" + name, option->get_description(), start);
      }
    }
  }
  void offer_values(const CLI::Option& option, const std::string& start, const std::string& before) {
    for (const std::string& value : values_of(option)) offer(before + value, "", before + start);
    if (before.empty() || option.check_name("--pif")) out_.names = kind_of(option);
  }
  void offer_commands(const std::string& start) {
    for (const CLI::App* command :
         here_->get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); }))
      offer(command->get_name(), command->get_description(), start);
    if (here_ != &app_) return;
    for (const std::string& tool : tools_) offer(tool, "a tool", start);
  }
  // What may stand where no option does.
  void offer_words(const std::string& start) {
    offer_commands(start);
    std::vector<const CLI::Option*> operands;
    for (const CLI::Option* option : here_->get_options()) {
      if (option->get_positional()) operands.push_back(option);
    }
    if (here_->get_name() == "run") out_.names = NameKind::kLocal;
    if (operands.empty()) return;
    const CLI::Option& operand = *operands[std::min(operands_, operands.size() - 1)];
    if (here_->get_name() == "help") {
      here_ = &app_;
      return offer_commands(start);
    }
    offer_values(operand, start, "");
  }

  const CLI::App& app_;
  const std::vector<std::string>& tools_;
  const CLI::App* here_;
  const CLI::Option* open_ = nullptr;  // waits for its value
  bool is_other_program_ = false;      // behind `pif run PROGRAM`
  std::size_t operands_ = 0;
  Candidates out_;
};

}  // namespace

Candidates candidates_for(const CLI::App& app, const std::vector<std::string>& tools,
                          const std::vector<std::string>& words) {
  return Walk(app, tools).run(joined(words));
}

std::vector<Candidate> options_in_help(const std::string& help, const std::string& start) {
  const auto is_part = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  std::set<std::string> found;
  for (std::size_t at = help.find("--"); at != std::string::npos; at = help.find("--", at)) {
    std::size_t end = at;
    while (end < help.size() && is_part(help[end])) ++end;
    const bool begins = at == 0 || help[at - 1] == ' ' || help[at - 1] == ',' || help[at - 1] == '\n';
    if (begins && end > at + 2) found.insert(help.substr(at, end - at));
    at = end;
  }
  std::vector<Candidate> out;
  for (const std::string& word : found) {
    if (word.starts_with(start)) out.push_back({word, ""});
  }
  return out;
}

}  // namespace pif::cli
