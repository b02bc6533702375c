// Removing names, one by one or whole trees.
#include <fmt/format.h>

#include "context/server_context.h"
#include "directory/names.h"
#include "pif/base/assert.h"
#include "pif/base/timers.h"

namespace pif::server {
namespace {

constexpr int kRemovePathsMax = 4096;
constexpr std::size_t kJobsMax = 256;
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

Status remove(ServerContext& context, Call& call, const proto::Remove& ask, proto::RemoveReply& reply) {
  if (ask.paths_size() > kRemovePathsMax) {
    return fail(Code::kTooLarge,
                fmt::format("{} paths in one request, the limit is {}", ask.paths_size(), kRemovePathsMax));
  }
  if (ask.recursive() && ask.fork_of() != 0) return fail(Code::kInvalid, "nothing is in a fork that could be removed");
  if (ask.recursive()) {
    if (context.jobs.size() >= kJobsMax)
      return fail(Code::kBusy, "too many folders are being removed already: try again later");
    RemoveJob job{.peer = call.peer,
                  .session = call.session->id,
                  .request = call.request,
                  .who = call.who(),
                  .arrived = call.arrived};
    job.next_sign = context.now + kSignEvery;
    context.jobs.push_back(std::move(job));
    call.session->running.insert(call.request.id());
    call.deferred = true;
    return {};
  }
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

void finish_path(RemoveJob& job, const Status& status) {
  PIF_ASSERT(job.path < job.request.remove().paths_size(), job.path);
  add_result(job.reply, status);
  job.levels.clear();
  ++job.path;
}

// The next path of the request: a file goes at once, a folder becomes the outermost level.
Status start_path(ServerContext& context, RemoveJob& job) {
  PIF_ASSERT(job.levels.empty() && job.path < job.request.remove().paths_size(), job.path, job.levels.size());
  const std::string& path = job.request.remove().paths(job.path);
  PIF_TRY_VALUE(const Place at, context.directory.place_to_change(path, job.who));
  PIF_TRY_VALUE(const auto entry, context.rows.entry(at.folder->id(), at.name));
  if (!entry) return fail(Code::kNotFound, fmt::format("there is no {}", at.path));
  PIF_TRY(Directory::check_may_take_away(at, *entry, job.who));
  if (entry->type() == proto::FOLDER) {
    job.levels.push_back({entry->id(), at.folder->id(), std::string(at.name)});
    return {};
  }
  PIF_TRY(remove_file(context, at.folder->id(), at.name, *entry));
  job.reply.set_removed(job.reply.removed() + 1);
  finish_path(job, {});
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
Status enter(RemoveJob& job, const Child& child) {
  const std::uint64_t id = child.entry.id();
  PIF_ASSERT(!job.levels.empty() && child.entry.type() == proto::FOLDER, id, job.path);
  for (const RemoveJob::Level& level : job.levels)
    if (level.folder == id)
      return fail(Code::kCorrupt, fmt::format("the folder {} below {} lies in itself", child.name,
                                              job.request.remove().paths(job.path)));
  job.levels.push_back({id, job.levels.back().folder, child.name});
  return {};
}

// Part of the innermost folder: its files up to the first folder in it, which becomes the innermost; or, if it is
// empty, itself.
Status step_level(ServerContext& context, RemoveJob& job, std::size_t& budget) {
  PIF_ASSERT(!job.levels.empty() && budget > 0, job.levels.size(), budget);
  const RemoveJob::Level level = job.levels.back();
  PIF_TRY_VALUE(const auto found, children(context, level.folder, std::min(budget, kChildrenAtOnce)));
  if (found.empty()) {
    PIF_TRY(remove_folder(context, level.parent, level.name, level.folder));
    job.reply.set_removed(job.reply.removed() + 1);
    job.levels.pop_back();
    --budget;
    if (job.levels.empty()) finish_path(job, {});
    return {};
  }
  PIF_TRY_VALUE(const Guard guard, context.directory.guard_of_folder(level.folder));
  for (const Child& child : found) {
    if (!may_take_away(job.who, guard, child.entry.attributes().owner()))
      return fail(Code::kPermission, fmt::format("uid {} owns neither {}, below {}, nor its folder, which is sticky",
                                                 job.who.uid, child.name, job.request.remove().paths(job.path)));
    if (child.entry.type() == proto::FOLDER) {
      if (!may(job.who, guard_of(child.entry.attributes()), kWantRead | kWantWrite | kWantSearch)) {
        PIF_TRY_VALUE(const auto inside, children(context, child.entry.id(), 1));
        if (!inside.empty()) {
          return fail(Code::kPermission, fmt::format("uid {} may not empty the folder {} below {}", job.who.uid,
                                                     child.name, job.request.remove().paths(job.path)));
        }
      }
      --budget;
      return enter(job, child);
    }
    PIF_TRY(remove_file(context, level.folder, child.name, child.entry));
    job.reply.set_removed(job.reply.removed() + 1);
    --budget;
  }
  return {};
}

// Other requests are served between two steps. Levels from the first one on that is not any more where it was found are
// left alone: what was moved out of a tree is not removed with it, and a name may be another folder's by now.
Status leave_moved(ServerContext& context, RemoveJob& job) {
  for (auto level = job.levels.begin(); level != job.levels.end(); ++level) {
    PIF_TRY_VALUE(const auto entry, context.rows.entry(level->parent, level->name));
    if (entry && entry->type() == proto::FOLDER && entry->id() == level->folder) continue;
    if (level == job.levels.begin()) {
      return fail(Code::kNotFound,
                  fmt::format("the folder {} was moved or removed meanwhile", job.request.remove().paths(job.path)));
    }
    job.levels.erase(level, job.levels.end());
    break;
  }
  return {};
}

// The outermost folder of a path needs the same rights as those within it.
Status check_outermost(ServerContext& context, const RemoveJob& job) {
  PIF_ASSERT(job.levels.size() == 1, job.levels.size());
  const RemoveJob::Level& level = job.levels.front();
  PIF_TRY_VALUE(const auto entry, context.rows.entry(level.parent, level.name));
  if (entry && may(job.who, guard_of(entry->attributes()), kWantRead | kWantWrite | kWantSearch)) return {};
  PIF_TRY_VALUE(const auto inside, children(context, level.folder, 1));
  if (inside.empty()) return {};
  return fail(Code::kPermission,
              fmt::format("uid {} may not empty the folder {}", job.who.uid, job.request.remove().paths(job.path)));
}

}  // namespace

void bind_removing(Operations& operations) { operations.bind<remove>(); }

Result<bool> step_remove(ServerContext& context, RemoveJob& job, std::size_t budget) {
  if (auto there = leave_moved(context, job); !there) finish_path(job, there);
  while (budget > 0 && job.path < job.request.remove().paths_size()) {
    Status done;
    if (job.levels.empty()) {
      done = start_path(context, job);
      if (done && !job.levels.empty()) done = check_outermost(context, job);
      --budget;
    } else {
      done = step_level(context, job, budget);
    }
    if (context.rows.broken()) return fail(*context.rows.broken());  // perhaps by another request of this turn
    if (!done) finish_path(job, done);
  }
  PIF_ASSERT(job.reply.errors_size() == job.path, job.reply.errors_size(), job.path);  // a result for each path
  return job.path >= job.request.remove().paths_size();
}

}  // namespace pif::server
