#include "text/expand.h"

#include <fnmatch.h>
#include <locale.h>

#include <algorithm>
#include <string_view>

#include "pif/base/path.h"
#include "text/text.h"

namespace pif::cli {
namespace {

constexpr std::string_view kSpecial = "*?[";

// As long as it lives, a character is one of UTF-8, whatever the environment says.
class Utf8 {
 public:
  Utf8()
      : utf8_(::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)),
        before_(utf8_ == nullptr ? nullptr : ::uselocale(utf8_)) {}
  Utf8(const Utf8&) = delete;
  Utf8& operator=(const Utf8&) = delete;
  ~Utf8() {
    if (utf8_ == nullptr) return;  // a machine without it: a character is a byte
    ::uselocale(before_);
    ::freelocale(utf8_);
  }

 private:
  locale_t utf8_, before_;
};

bool is_pattern(std::string_view name) { return name.find_first_of(kSpecial) != std::string_view::npos; }

std::vector<std::string> names_of(std::string_view path) {
  std::vector<std::string> names;
  while (path.size() > 1) {
    path.remove_prefix(1);
    const std::size_t slash = std::min(path.find('/'), path.size());
    names.emplace_back(path.substr(0, slash));
    path.remove_prefix(slash);
  }
  return names;
}

bool means_folder(std::string_view path) { return path.size() > 1 && path.ends_with('/'); }

// What one pattern matches.
class Expansion {
 public:
  Expansion(Client& client, std::string_view pattern)
      : client_(client), names_(names_of(pattern)), only_folders_(means_folder(pattern)) {}

  Result<std::vector<std::string>> run() {
    PIF_TRY(below("/", 0));
    return std::move(found_);
  }

 private:
  Status below(const std::string& folder, std::size_t at) {
    const std::string& name = names_[at];
    const bool is_last = at + 1 == names_.size();
    if (!is_pattern(name)) {
      const std::string path = join_path(folder, name);
      return is_last ? add_if_there(path) : below(path, at + 1);
    }
    const std::string prefix = name.substr(0, name.find_first_of(std::string(kSpecial) + "\\"));
    Status inside;
    const Status listed = for_each_with_prefix(client_, folder, prefix, [&](const Entry& entry) -> Status {
      if (!matches(name, entry.name, Dots::kHide)) return {};
      const std::string path = join_path(folder, entry.name);
      if (is_last)
        add(entry, path);
      else if (entry.kind == EntryKind::kFolder)
        inside = below(path, at + 1);
      return inside;
    });
    PIF_TRY(inside);
    return listed || !is_no_match(listed.error()) ? listed : Status{};
  }

  void add(const Entry& entry, const std::string& path) {
    if (!only_folders_ || entry.kind == EntryKind::kFolder) found_.push_back(path);
  }
  Status add_if_there(const std::string& path) {
    const Result<Entry> entry = client_.stat(path);
    if (entry) add(*entry, path);
    return entry || is_no_match(entry.error()) ? Status{} : Status(fail(entry.error()));
  }

  // What is not there, is no folder, or may not be looked into has no matches, as in a shell.
  static bool is_no_match(const Error& error) {
    return error.code == Code::kNotFound || error.code == Code::kNotDirectory || error.code == Code::kPermission;
  }

  Client& client_;
  const std::vector<std::string> names_;
  const bool only_folders_;
  std::vector<std::string> found_;
};

}  // namespace

bool matches(const std::string& pattern, const std::string& name, Dots dots) {
  const Utf8 utf8;
  return ::fnmatch(pattern.c_str(), name.c_str(), dots == Dots::kHide ? FNM_PERIOD : 0) == 0;
}

bool matches_path(const std::string& pattern, const std::string& path) {
  const Utf8 utf8;
  return ::fnmatch(pattern.c_str(), path.c_str(), FNM_PATHNAME) == 0;
}

Status expand(Client& client, std::vector<std::string>& paths) {
  std::vector<std::string> out;
  for (std::string& path : paths) {
    const bool is_asked = (is_pattern(path) || means_folder(path)) && check_path(path).has_value();
    const bool is_there = is_asked && client.stat(path).has_value();
    std::vector<std::string> found;
    if (is_asked && is_pattern(path) && !is_there) {
      PIF_TRY_VALUE(found, Expansion(client, path).run());
    }
    if (is_there && means_folder(path)) path.pop_back();
    if (found.empty()) found.push_back(std::move(path));
    std::move(found.begin(), found.end(), std::back_inserter(out));
  }
  paths = std::move(out);
  return {};
}

Status for_each_with_prefix(Client& client, const std::string& folder, const std::string& prefix,
                            const std::function<Status(const Entry&)>& visit) {
  if (!prefix.empty()) {  // a page has what comes behind a name, not the name itself
    const Result<Entry> same = client.stat(join_path(folder, prefix));
    if (same)
      PIF_TRY(visit(*same));
    else if (same.error().code != Code::kNotFound && same.error().code != Code::kInvalid)
      return fail(same.error());  // "." is no name
  }
  std::string after = prefix;
  while (true) {
    PIF_TRY_VALUE(const ListPage page, client.list(folder, after));
    for (const Entry& entry : page.entries) {
      if (!entry.name.starts_with(prefix)) return {};
      PIF_TRY(visit(entry));
    }
    if (!page.more) return {};
    if (page.entries.empty()) return fail(Code::kInternal, "the server sent an empty page of " + folder);
    after = page.entries.back().name;
  }
}

}  // namespace pif::cli
