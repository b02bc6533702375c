// Removing names, one by one or whole trees.
#include <fmt/format.h>

#include "context/server_context.h"
#include "directory/names.h"
#include "pif/base/assert.h"

namespace pif::server {
namespace {

constexpr int kRemovePathsMax = 4096;
constexpr std::size_t kRemovalsMax = 256;  // at once
constexpr std::size_t kPart = 1000;        // entries, of one removal in a turn
constexpr std::size_t kChildrenAtOnce = 256;

bool is_in(std::string_view key, std::string_view prefix) { return key.substr(0, prefix.size()) == prefix; }

Status remove_file(ServerContext& context, std::uint64_t parent, std::string_view name,
                   const proto::StoredEntry& entry) {
  ++context.weight;
  context.changed_folders.insert(parent);
  PIF_TRY(doom(context, parent, name, entry));
  return context.rows.erase_entry(parent, name);
}

// An empty folder.
Status remove_folder(ServerContext& context, std::uint64_t parent, std::string_view name, std::uint64_t id) {
  ++context.weight;
  context.changed_folders.insert(parent);
  context.directory.forget_folders();
  context.rows.on_abort([&context] { context.directory.forget_folders(); });
  PIF_TRY(context.rows.erase_entry(parent, name));
  return context.rows.erase_folder(id);
}

// fork_of: 0: of none.
Status remove_one(ServerContext& context, const std::string& path, std::uint64_t fork_of, const Requester& who) {
  PIF_TRY_VALUE(const Place at, fork_of != 0 ? context.directory.fork_to_change(fork_of, path, who)
                                             : context.directory.place_to_change(path, who));
  PIF_TRY_VALUE(const auto entry, context.rows.entry(at.folder->id(), at.name));
  if (!entry) return fail(Code::kNotFound, fmt::format("there is no {}", at.path));
  PIF_TRY(Directory::check_may_take_away(at, *entry, who));
  if (entry->type() != proto::FOLDER) return remove_file(context, at.folder->id(), at.name, *entry);
  const std::string prefix = entry_key(entry->id(), {});
  bool empty = true;
  PIF_TRY(context.rows.scan(kEntries, prefix, [&](std::string_view key, std::string_view) {
    empty = !is_in(key, prefix);
    return false;
  }));
  if (!empty) return fail(Code::kNotEmpty, fmt::format("the folder {} is not empty", at.path));
  return remove_folder(context, at.folder->id(), at.name, entry->id());
}

void add_result(proto::RemoveReply& reply, const Status& status) {
  proto::Error& error = *reply.add_errors();
  if (status) return;
  error.set_code(static_cast<std::uint32_t>(status.error().code));
  error.set_text(status.error().text);
  error.set_node("server");
}

// A recursive Remove.
struct Removal {
  const proto::Remove& asked;
  const Requester who;
  proto::RemoveReply& reply;
  int path = 0;  // of those asked for, the one being removed
  struct Level {
    std::uint64_t folder;
    std::uint64_t parent;
    std::string name;
  };
  std::vector<Level> levels;  // folders being emptied, outermost first
};

void finish_path(Removal& removal, const Status& status) {
  PIF_ASSERT(removal.path < removal.asked.paths_size(), removal.path);
  add_result(removal.reply, status);
  removal.levels.clear();
  ++removal.path;
}

// The next path of the request: a file goes at once, a folder becomes the outermost level.
Status start_path(ServerContext& context, Removal& removal) {
  PIF_ASSERT(removal.levels.empty() && removal.path < removal.asked.paths_size(), removal.path, removal.levels.size());
  const std::string& path = removal.asked.paths(removal.path);
  PIF_TRY_VALUE(const Place at, context.directory.place_to_change(path, removal.who));
  PIF_TRY_VALUE(const auto entry, context.rows.entry(at.folder->id(), at.name));
  if (!entry) return fail(Code::kNotFound, fmt::format("there is no {}", at.path));
  PIF_TRY(Directory::check_may_take_away(at, *entry, removal.who));
  if (entry->type() == proto::FOLDER) {
    removal.levels.push_back({entry->id(), at.folder->id(), std::string(at.name)});
    return {};
  }
  PIF_TRY(remove_file(context, at.folder->id(), at.name, *entry));
  removal.reply.set_removed(removal.reply.removed() + 1);
  finish_path(removal, {});
  return {};
}

struct Child {
  std::string name;
  proto::StoredEntry entry;
};

Result<std::vector<Child>> children(ServerContext& context, std::uint64_t folder, std::size_t limit) {
  PIF_ASSERT(limit > 0, folder);
  std::vector<Child> found;
  const std::string prefix = entry_key(folder, {});
  PIF_TRY(context.rows.scan(kEntries, prefix, [&](std::string_view key, std::string_view stored) {
    if (!is_in(key, prefix)) return false;
    Child& child = found.emplace_back();
    child.name = key.substr(prefix.size());
    child.entry.ParseFromArray(stored.data(), static_cast<int>(stored.size()));
    return found.size() < limit;
  }));
  PIF_ASSERT(found.size() <= limit, found.size(), limit);
  return found;
}

// Down into a folder of the innermost one. In a damaged directory a folder may lie in itself: there is no end to such a
// tree.
Status enter(Removal& removal, const Child& child) {
  const std::uint64_t id = child.entry.id();
  PIF_ASSERT(!removal.levels.empty() && child.entry.type() == proto::FOLDER, id, removal.path);
  for (const Removal::Level& level : removal.levels)
    if (level.folder == id)
      return fail(Code::kCorrupt,
                  fmt::format("the folder {} below {} lies in itself", child.name, removal.asked.paths(removal.path)));
  removal.levels.push_back({id, removal.levels.back().folder, child.name});
  return {};
}

// Part of the innermost folder: its files up to the first folder in it, which becomes the innermost; or, if it is
// empty, itself.
Status step_level(ServerContext& context, Removal& removal, std::size_t& budget) {
  PIF_ASSERT(!removal.levels.empty() && budget > 0, removal.levels.size(), budget);
  const Removal::Level level = removal.levels.back();
  PIF_TRY_VALUE(const auto found, children(context, level.folder, std::min(budget, kChildrenAtOnce)));
  if (found.empty()) {
    PIF_TRY(remove_folder(context, level.parent, level.name, level.folder));
    removal.reply.set_removed(removal.reply.removed() + 1);
    removal.levels.pop_back();
    --budget;
    if (removal.levels.empty()) finish_path(removal, {});
    return {};
  }
  PIF_TRY_VALUE(const Guard guard, context.directory.guard_of_folder(level.folder));
  for (const Child& child : found) {
    if (!may_take_away(removal.who, guard, child.entry.attributes().owner()))
      return fail(Code::kPermission, fmt::format("uid {} owns neither {}, below {}, nor its folder, which is sticky",
                                                 removal.who.uid, child.name, removal.asked.paths(removal.path)));
    if (child.entry.type() == proto::FOLDER) {
      if (!may(removal.who, guard_of(child.entry.attributes()), kWantRead | kWantWrite | kWantSearch)) {
        PIF_TRY_VALUE(const auto inside, children(context, child.entry.id(), 1));
        if (!inside.empty()) {
          return fail(Code::kPermission, fmt::format("uid {} may not empty the folder {} below {}", removal.who.uid,
                                                     child.name, removal.asked.paths(removal.path)));
        }
      }
      --budget;
      return enter(removal, child);
    }
    PIF_TRY(remove_file(context, level.folder, child.name, child.entry));
    removal.reply.set_removed(removal.reply.removed() + 1);
    --budget;
  }
  return {};
}

// Other requests are served between two steps. Levels from the first one on that is not any more where it was found are
// left alone: what was moved out of a tree is not removed with it, and a name may be another folder's by now.
Status leave_moved(ServerContext& context, Removal& removal) {
  for (auto level = removal.levels.begin(); level != removal.levels.end(); ++level) {
    PIF_TRY_VALUE(const auto entry, context.rows.entry(level->parent, level->name));
    if (entry && entry->type() == proto::FOLDER && entry->id() == level->folder) continue;
    if (level == removal.levels.begin()) {
      return fail(Code::kNotFound,
                  fmt::format("the folder {} was moved or removed meanwhile", removal.asked.paths(removal.path)));
    }
    removal.levels.erase(level, removal.levels.end());
    break;
  }
  return {};
}

// The outermost folder of a path needs the same rights as those within it.
Status check_outermost(ServerContext& context, const Removal& removal) {
  PIF_ASSERT(removal.levels.size() == 1, removal.levels.size());
  const Removal::Level& level = removal.levels.front();
  PIF_TRY_VALUE(const auto entry, context.rows.entry(level.parent, level.name));
  if (entry && may(removal.who, guard_of(entry->attributes()), kWantRead | kWantWrite | kWantSearch)) return {};
  PIF_TRY_VALUE(const auto inside, children(context, level.folder, 1));
  if (inside.empty()) return {};
  return fail(Code::kPermission,
              fmt::format("uid {} may not empty the folder {}", removal.who.uid, removal.asked.paths(removal.path)));
}

// Up to `budget` entries; true when it is done.
Result<bool> step_remove(ServerContext& context, Removal& removal, std::size_t budget) {
  if (auto there = leave_moved(context, removal); !there) finish_path(removal, there);
  while (budget > 0 && removal.path < removal.asked.paths_size()) {
    Status done;
    if (removal.levels.empty()) {
      done = start_path(context, removal);
      if (done && !removal.levels.empty()) done = check_outermost(context, removal);
      --budget;
    } else {
      done = step_level(context, removal, budget);
    }
    if (context.rows.broken()) return fail(*context.rows.broken());  // perhaps by another request of this turn
    if (!done) finish_path(removal, done);
  }
  PIF_ASSERT(removal.reply.errors_size() == removal.path, removal.reply.errors_size(),
             removal.path);  // a result for each path
  return removal.path >= removal.asked.paths_size();
}

// The server is not behind, and commits are not held.
Status wait_until_may_change(ServerContext& context) {
  while (!context.may_change()) {
    if (context.standing == Standing::kBehind) return fail(Code::kStaleServer, context.behind);
    context.admission.news().wait();
  }
  return {};
}

// A bounded part in each turn, of one removal at a time; others are served in between.
Status remove_trees(ServerContext& context, Call& call, const proto::Remove& ask, proto::RemoveReply& reply) {
  if (context.removals >= kRemovalsMax)
    return fail(Code::kBusy, "too many folders are being removed already: try again later");
  PIF_TRY(check_room(context));
  const std::uint64_t session = call.session->id, request = call.request.envelope().id();
  Removal removal{ask, call.who(), reply};
  ++context.removals;
  call.session->running.insert(request);
  const daemon::AtExit end([&context, session, request] {
    --context.removals;
    if (Session* const again = context.sessions.find(session)) again->running.erase(request);
    context.removals_over.notify();
  });
  for (;;) {
    const auto place = context.removing.acquire();
    if (context.weight >= kWeightPerTurn) context.turn.next();
    PIF_TRY(wait_until_may_change(context));
    PIF_TRY_VALUE(const bool is_done, step_remove(context, removal, kPart));
    if (is_done) return {};
    PIF_TRY(context.turn.commit());
  }
}

Status remove(ServerContext& context, Call& call, const proto::Remove& ask, proto::RemoveReply& reply) {
  if (ask.paths_size() > kRemovePathsMax) {
    return fail(Code::kTooLarge,
                fmt::format("{} paths in one request, the limit is {}", ask.paths_size(), kRemovePathsMax));
  }
  if (ask.recursive() && ask.fork_of() != 0) return fail(Code::kInvalid, "nothing is in a fork that could be removed");
  if (ask.recursive()) return remove_trees(context, call, ask, reply);
  std::uint64_t removed = 0;
  for (const std::string& path : ask.paths()) {
    const Status done = remove_one(context, path, ask.fork_of(), call.who());
    if (context.rows.is_broken()) return done;
    removed += done ? 1 : 0;
    add_result(reply, done);
  }
  reply.set_removed(removed);
  return {};
}

}  // namespace

void bind_removing(Operations& operations) { operations.bind<remove>(); }

}  // namespace pif::server
