// `pif-server check`: what must hold in a directory, whoever wrote it.
#include <fmt/format.h>

#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "directory/names.h"
#include "directory/opens.h"
#include "directory/permissions.h"
#include "directory/rows.h"
#include "directory/striping.h"
#include "pif/base/fork.h"
#include "pif/base/format.h"
#include "pif/kv/value.h"
#include "pif/server/server.h"
#include "pif/wire/convert.h"
#include "pif/wire/values.h"

namespace pif::server {
namespace {

constexpr std::size_t kDamagesMax = 10'000;

struct Seen {
  std::uint64_t parent;
  std::string name;
};

struct Fork {
  std::uint64_t parent;
  std::string name;
  proto::FileLayout layout;
};

class Checker {
 public:
  explicit Checker(kv::Store& store) : store_(store) {}

  Result<CheckReport> run() {
    PIF_TRY_VALUE(txn_, store_.read());
    PIF_TRY(table(kEntries, [this](std::string_view key, std::string_view payload) { entry(key, payload); }));
    PIF_TRY(table(kFiles, [this](std::string_view key, std::string_view payload) { file(key, payload); }));
    PIF_TRY(table(kMeta, [this](std::string_view key, std::string_view payload) { meta(key, payload); }));
    PIF_TRY(table(kNodes, [](std::string_view, std::string_view) {}));
    PIF_TRY(table(kRecent, [](std::string_view, std::string_view) {}));
    PIF_TRY(table(kNumbers, [this](std::string_view key, std::string_view) { number(key); }));
    PIF_TRY(table(kInputLocks, [this](std::string_view key, std::string_view payload) { input_lock(key, payload); }));
    compare();
    return std::move(report_);
  }

 private:
  void damage(std::string_view text) {
    if (report_.damages.size() < kDamagesMax) report_.damages.emplace_back(text);
  }

  template <typename Visit>
  Status table(Tables which, Visit visit) {
    return txn_->scan(which, {}, [&](std::string_view key, std::string_view value) {
      auto payload = kv::open_value(value, fmt::format("table {}", kDirectoryTables[which]));
      if (payload) {
        visit(key, *payload);
      } else {
        damage(payload.error().text);
      }
      return true;
    });
  }

  void entry(std::string_view key, std::string_view payload) {
    proto::StoredEntry row;
    if (key.size() < 9 || !row.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
      damage("table entries has a key or value that cannot be read");
      return;
    }
    const std::uint64_t parent = kv::u64_of_key(key);
    const std::string name(key.substr(8));
    const bool root = parent == kRootParent && name == kRootName;
    const bool good = root || (is_fork(name) ? row.type() == proto::FILE_ENTRY && parse_fork(name).has_value()
                                             : check_path("/" + name).has_value());
    if (is_fork(name)) forks_.push_back({parent, name, row.layout()});
    if (!good) damage(fmt::format("folder {} has an entry with a name that is not allowed", parent));
    auto& seen = row.type() == proto::FOLDER ? folders_ : files_;
    if (!seen.emplace(row.id(), Seen{parent, name}).second)
      damage(fmt::format("id {} ({}) is there twice", row.id(), name));
    ++(row.type() == proto::FOLDER ? report_.folders : report_.files);
    if (row.has_striping()) striping(row, name);
    is_wide_ |= row.type() == proto::OTHER || row.attributes().mode() > kNarrowModeMask;
    if (row.type() == proto::OTHER && !wire::other_kind_of(row.other()))
      damage(fmt::format("entry {} ({}) is of a kind that cannot be", row.id(), name));
    if (row.type() == proto::FILE_ENTRY) layout(row.layout(), fmt::format("file {} ({})", row.id(), name));
  }

  static bool is_fork(std::string_view name) { return name != kRootName && name.find('/') != std::string_view::npos; }

  void striping(const proto::StoredEntry& row, const std::string& name) {
    if (row.type() != proto::FOLDER) damage(fmt::format("file {} ({}) has the striping of a folder", row.id(), name));
    const auto good = check_striping(row.striping(), 0);
    if (!good) damage(fmt::format("folder {} ({}) has striping that cannot be: {}", row.id(), name, good.error().text));
  }

  void layout(const proto::FileLayout& layout, const std::string& what) {
    const std::unordered_set<std::uint32_t> nodes(layout.nodes().begin(), layout.nodes().end());
    if (nodes.size() != static_cast<std::size_t>(layout.nodes_size())) damage(what + " has a node twice");
    const auto made = wire::layout_of(layout);
    if (!made) damage(fmt::format("{} has a layout that cannot be: {}", what, made.error().text));
  }

  void file(std::string_view key, std::string_view payload) {
    proto::StoredFile row;
    if (key.size() != 8 || !row.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
      damage("table files has a key or value that cannot be read");
      return;
    }
    const std::uint64_t id = kv::u64_of_key(key);
    ids_.insert(id);
    if (row.state() == kCommitted) {
      committed_.emplace(id, Seen{row.parent(), row.name()});
    } else if (row.state() == kPending || row.state() == kDoomed) {
      const std::string what = fmt::format("unfinished file {} ({})", id, row.name());
      layout(row.entry().layout(), what);
      if (row.state() == kPending) pending_.emplace(id, row.entry().layout());
      members(row, what);
    } else {
      damage(fmt::format("file {} ({}) has the unknown state {}", id, row.name(), row.state()));
    }
  }

  void members(const proto::StoredFile& row, const std::string& what) {
    if (row.members().empty()) return;
    std::unordered_set<std::uint64_t> sessions;
    bool good = row.incarnations_size() == row.entry().layout().nodes_size();
    for (const proto::StoredMember& member : row.members()) {
      const bool known = member.state() >= wire::kMemberWriting && member.state() <= wire::kMemberDropped;
      good = good && known && member.session() != 0 && sessions.insert(member.session()).second;
    }
    if (!good) damage(what + " has members that cannot be");
  }

  void meta(std::string_view key, std::string_view payload) {
    if (key == kVersionKey) has_wide_format_ = payload == kv::key_u32(kWideFormat);
    if (key.size() == 9 && key.front() == 'f') {
      proto::StoredFile row;
      if (!row.ParseFromArray(payload.data(), static_cast<int>(payload.size())))
        damage("table meta has a value that cannot be read");
      const std::uint64_t id = kv::u64_of_key(key.substr(1));
      ids_.insert(id);
      places_.emplace(id, Seen{row.parent(), row.name()});
    }
  }

  void input_lock(std::string_view key, std::string_view payload) {
    proto::StoredInputLock row;
    if (key.size() == 16 && row.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) return;
    damage("table input-locks has a key or value that cannot be read");
  }

  void number(std::string_view key) {
    if (key.size() == 9 && key.front() == 'g') ranges_.insert(kv::u64_of_key(key.substr(1)));
  }

  // Every entry's parent is a folder, and rows by id and entries by name say the same.
  void compare() {
    if (is_wide_ && !has_wide_format_)
      damage(fmt::format("there are entries that only format {} has, and the directory does not say it", kWideFormat));
    if (!folders_.contains(kRootFolder)) damage("the root folder is missing");
    for (const std::uint64_t id : ids_) {
      const std::uint64_t range = id >> 32;
      if (range != 0 && !ranges_.contains(range))
        damage(fmt::format("id {} is used, and of no range that was begun here", id));
    }
    for (const auto* all : {&folders_, &files_}) {
      for (const auto& [id, seen] : *all) {
        if (id != kRootFolder && !is_fork(seen.name) && !folders_.contains(seen.parent)) {
          damage(fmt::format("{} (id {}) is in folder {}, which is not there", seen.name, id, seen.parent));
        }
      }
    }
    for (const Fork& one : forks_) check_fork(one);
    find_circles();
    match(files_, committed_, "file");
    auto named = folders_;
    named.erase(kRootFolder);
    match(named, places_, "folder");
  }

  // Of the file that has a fork; nothing: there is no such file.
  std::optional<proto::FileLayout> layout_of_parent(std::uint64_t file) {
    if (const auto created = pending_.find(file); created != pending_.end()) return created->second;
    const auto seen = files_.find(file);
    if (seen == files_.end()) return {};
    const auto value = txn_->get(kEntries, entry_key(seen->second.parent, seen->second.name));
    const auto payload = value && *value ? kv::open_value(**value, "table entries") : std::string_view();
    proto::StoredEntry row;
    if (!payload || !row.ParseFromArray(payload->data(), static_cast<int>(payload->size()))) return {};
    return row.layout();
  }

  // A fork is in a subfile of its file.
  void check_fork(const Fork& one) {
    const auto above = layout_of_parent(one.parent);
    if (!above) return damage(fmt::format("fork {} is of file {}, which is not there", one.name, one.parent));
    const auto name = parse_fork(one.name);
    const bool good = name && name->subfile < static_cast<std::uint32_t>(above->nodes_size()) &&
                      one.layout.nodes_size() == 1 &&
                      one.layout.nodes(0) == above->nodes(static_cast<int>(name->subfile));
    if (!good) damage(fmt::format("fork {} of file {} is not on the LFS of its subfile", one.name, one.parent));
  }

  // Every folder is below the root; each is climbed from once.
  void find_circles() {
    std::unordered_map<std::uint64_t, std::uint64_t> climbed_from = {{kRootFolder, kRootFolder}};
    for (const auto& [id, seen] : folders_) {
      std::uint64_t at = id;
      for (auto step = folders_.find(at); step != folders_.end() && climbed_from.emplace(at, id).second;
           step = folders_.find(at))
        at = step->second.parent;
      if (at != kRootFolder && climbed_from[at] == id && folders_.contains(at))
        damage(fmt::format("folder {} ({}) lies in itself", at, folders_.at(at).name));
    }
  }

  void match(const std::unordered_map<std::uint64_t, Seen>& entries,
             const std::unordered_map<std::uint64_t, Seen>& rows, std::string_view what) {
    for (const auto& [id, seen] : entries) {
      const auto row = rows.find(id);
      if (row == rows.end()) {
        damage(fmt::format("{} {} ({}) has an entry, but no row by id", what, id, seen.name));
      } else if (row->second.parent != seen.parent || row->second.name != seen.name) {
        damage(fmt::format("{} {} is {} by its entry and {} by its row", what, id, seen.name, row->second.name));
      }
    }
    for (const auto& [id, seen] : rows) {
      if (!entries.contains(id)) damage(fmt::format("{} {} ({}) has a row by id, but no entry", what, id, seen.name));
    }
  }

  kv::Store& store_;
  std::unique_ptr<kv::Transaction> txn_;
  CheckReport report_;
  std::unordered_map<std::uint64_t, Seen> folders_, files_;     // by entry
  std::unordered_map<std::uint64_t, Seen> places_, committed_;  // by row
  std::unordered_map<std::uint64_t, proto::FileLayout> pending_;
  std::vector<Fork> forks_;
  std::unordered_set<std::uint64_t> ids_, ranges_;
  bool is_wide_ = false, has_wide_format_ = false;  // it has what only kWideFormat has; it says that it has
};

}  // namespace

Result<CheckReport> check_directory(kv::Store& directory) { return Checker(directory).run(); }

}  // namespace pif::server
