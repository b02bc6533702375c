#include "names/entries.h"

#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "names/striping.h"
#include "text/text.h"

namespace pif::cli {

namespace {

struct KindName {
  std::string_view word;
  char letter;
};

// By EntryKind.
constexpr KindName kKinds[] = {{"folder", 'd'},      {"file", '-'},   {"link", 'l'},
                               {"fifo", 'p'},        {"socket", 's'}, {"character device", 'c'},
                               {"block device", 'b'}};

bool is_device(const Entry& entry) {
  return entry.kind == EntryKind::kCharacterDevice || entry.kind == EntryKind::kBlockDevice;
}

}  // namespace

std::string_view kind_word(EntryKind kind) { return kKinds[static_cast<std::size_t>(kind)].word; }
char kind_letter(EntryKind kind) { return kKinds[static_cast<std::size_t>(kind)].letter; }
std::string name_end(const Entry& entry) {
  if (entry.kind == EntryKind::kFolder) return "/";
  return entry.kind == EntryKind::kLink ? " -> " + shown(entry.target) : std::string();
}

Json json_of(const Format& format) {
  if (format.kind == RecordKind::kFixed) return {{"kind", "fixed"}, {"record_length", format.record_length}};
  if (format.kind == RecordKind::kVariable) return {{"kind", "variable"}};
  return {{"kind", "delimited"}, {"delimiter", format.delimiter}};
}

Json json_of(const Entry& entry, const std::string& path) {
  const bool folder = entry.kind == EntryKind::kFolder;
  Json out = {{"path", path},
              {"name", entry.name},
              {"kind", kind_word(entry.kind)},
              {"id", entry.id},
              {"owner", entry.owner},
              {"group", entry.group},
              {"mode", fmt::format("{:04o}", entry.mode)},
              {"modified", iso_date(entry.modified_ns)}};
  if (folder) {
    out["striping"] = json_of(entry.striping);
    return out;
  }
  if (entry.kind != EntryKind::kFile) {
    if (entry.kind == EntryKind::kLink) out["target"] = entry.target;
    if (is_device(entry)) out["device"] = entry.device;
    return out;
  }
  out["inode"] = entry.inode;
  out["records"] = entry.file_length.records;
  out["bytes"] = entry.file_length.bytes;
  out["format"] = json_of(entry.format);
  out["width"] = entry.nodes.size();
  out["nodes"] = entry.nodes;
  out["bevies"] = entry.bevies;
  if (entry.is_placed) out["placed"] = true;
  if (!entry.bevies.empty()) out["protected"] = entry.is_protected;
  Json attributes = Json::object();
  for (const auto& [name, value] : entry.attributes) attributes[name] = value.size();
  out["attribute_bytes"] = attributes;
  Json marks = Json::array();
  for (const FileMark& mark : entry.marks)
    marks.push_back(
        {{"node", mark.node}, {"kind", mark.kind == FileMark::Kind::kLost ? "lost" : "mixed"}, {"since", mark.since}});
  out["marks"] = marks;
  return out;
}

Status for_each_entry(const std::function<Result<ListPage>(const std::string& after)>& page,
                      const std::function<Status(const Entry&)>& visit) {
  std::string after;
  while (true) {
    PIF_TRY_VALUE(const ListPage now, page(after));
    for (const Entry& entry : now.entries) PIF_TRY(visit(entry));
    if (!now.more) return {};
    if (now.entries.empty()) return fail(Code::kInternal, "the server sent an empty page of names");
    after = now.entries.back().name;
  }
}

Status for_each_entry(Client& client, const std::string& folder, const std::function<Status(const Entry&)>& visit,
                      const EntryOrder& order) {
  const auto page = [&](const std::string& after) { return client.list(folder, after); };
  if (!order) return for_each_entry(page, visit);
  std::vector<Entry> entries;
  PIF_TRY(for_each_entry(page, [&](const Entry& entry) -> Status {
    entries.push_back(entry);
    return {};
  }));
  std::stable_sort(entries.begin(), entries.end(), order);
  for (const Entry& entry : entries) PIF_TRY(visit(entry));
  return {};
}

Status walk(Client& client, const std::string& folder, Failures& failures,
            const std::function<Status(const std::string& path, const Entry&)>& visit, const EntryOrder& order,
            const EntryFilter& is_left_out) {
  std::vector<std::string> waiting = {folder};
  while (!waiting.empty()) {
    const std::string here = std::move(waiting.back());
    waiting.pop_back();
    std::vector<std::string> folders;
    Status visited;
    const Status listed = for_each_entry(
        client, here,
        [&](const Entry& entry) -> Status {
          const std::string path = join_path(here, entry.name);
          if (is_left_out && is_left_out(path)) return {};
          if (entry.kind == EntryKind::kFolder) folders.push_back(path);
          return visited = visit(path, entry);
        },
        order);
    PIF_TRY(visited);
    if (!listed && (here == folder || ends_all(listed.error()))) return fail(at(here, listed.error()));
    if (!listed) failures.add(at(here, listed.error()));
    waiting.insert(waiting.end(), folders.rbegin(), folders.rend());  // the first is next
  }
  return {};
}

namespace {

// Where "file NUMBER" begins and ends, as LFSs and the server name what they know by its number.
std::pair<std::size_t, std::size_t> numbered_file(std::string_view text) {
  constexpr std::string_view kFile = "file ";
  constexpr std::size_t kDigitsMin = 10;  // the upper half of a file's number is at random
  for (std::size_t at = text.find(kFile); at != std::string_view::npos; at = text.find(kFile, at + 1)) {
    const std::size_t begin = at + kFile.size();
    const std::size_t end = std::min(text.find_first_not_of("0123456789", begin), text.size());
    if (end - begin >= kDigitsMin) return {at, end};
  }
  return {0, 0};
}

}  // namespace

Error at(const std::string& path, Error error) {
  if (const auto [begin, end] = numbered_file(error.text); end > begin) error.text.replace(begin, end - begin, path);
  if (error.text.find(path) == std::string::npos) error.text = path + ": " + error.text;
  return error;
}

Result<bool> is_folder(Client& client, const std::string& path) {
  const Result<Entry> entry = client.stat(path);
  if (entry) return entry->kind == EntryKind::kFolder;
  if (entry.error().code == Code::kNotFound) return false;
  return fail(entry.error());
}

std::string user_name(std::uint32_t uid) {
  std::vector<char> buffer(4096);
  passwd record{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &record, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) return record.pw_name;
  return std::to_string(uid);
}

namespace {

// 2^32 - 1 is nobody's number: the kernel takes it for "leave it as it is".
Result<std::uint32_t> id_of(const std::string& text, const char* kind) {
  const auto number = parse_number(text, kind);
  if (number && *number < UINT32_MAX) return static_cast<std::uint32_t>(*number);
  return fail(Code::kInvalid, fmt::format("there is no {} '{}' on this machine", kind, text));
}

}  // namespace

Result<std::uint32_t> user_id(const std::string& name) {
  std::vector<char> buffer(4096);
  passwd record{};
  passwd* found = nullptr;
  if (::getpwnam_r(name.c_str(), &record, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    return record.pw_uid;
  return id_of(name, "user");
}

Result<std::uint32_t> group_id(const std::string& name) {
  std::vector<char> buffer(4096);
  group record{};
  group* found = nullptr;
  if (::getgrnam_r(name.c_str(), &record, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    return record.gr_gid;
  return id_of(name, "group");
}

std::string group_name(std::uint32_t gid) {
  std::vector<char> buffer(4096);
  group record{};
  group* found = nullptr;
  if (::getgrgid_r(gid, &record, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) return record.gr_name;
  return std::to_string(gid);
}

}  // namespace pif::cli
