// New files that wait before they are sent: -o lazy.
#include <sys/stat.h>
#include <unistd.h>

#include <unordered_set>
#include <utility>
#include <vector>

#include "operations/mount.h"

namespace pif::mount {
namespace {

// A set-group-id folder gives its own group.
Entry entry_for(NodeId node, const NewFile& made, const Nodes::FolderLook& folder) {
  Entry entry;
  entry.name = made.name;
  entry.inode = node;
  entry.format = made.options.format;
  entry.mode = made.options.mode;
  entry.owner = made.options.owner.value_or(::geteuid());
  entry.group = (folder.mode & S_ISGID) != 0 ? folder.group : made.options.group.value_or(::getegid());
  entry.modified_ns = entry.changed_ns = wall_ns();
  return entry;
}

// The mount's own handle and lookup end.
void settle(Mount& mount, NodeId node) {
  const auto content = mount.nodes.content(node);
  if (!content->failed() && content->is_unsent()) {
    content->unlink({});
    mount.nodes.unlink(node);
  }
  if (const auto last = mount.nodes.close(node)) {
    if (const auto done = last->finish(); !done)
      spdlog::error("{}: the file is lost: {}", last->entry().name, done.error().to_string());
  }
  mount.nodes.forget(node, 1);
}

// Adds the file to `batch` if it is to be sent as it is. False: it goes on waiting.
bool prepare(Mount& mount, const Waiting::File& file, Time open_before, std::vector<Content*>& batch) {
  Content& content = *mount.nodes.content(file.node);
  if (mount.nodes.handles(file.node) == 1) content.close_unsent();
  if (content.state() == Content::State::kWaiting) {
    batch.push_back(&content);
  } else if (content.is_unsent() && !content.is_unlinked()) {
    if (file.since >= open_before) return false;
    (void)content.send_name();  // whoever has it open gets the error
  }
  return true;
}

}  // namespace

std::optional<Entry> make_waiting(Mount& mount, Client& client, unsigned number, NewFile made) {
  const auto folder = mount.nodes.folder(made.folder);
  if (!folder) return {};
  const NodeId node = mount.nodes.new_node();
  Entry entry = entry_for(node, made, *folder);
  made.options.modified_ns = entry.modified_ns;
  auto unsent =
      std::make_unique<Unsent>(Client::NewFile{std::move(made.path), std::move(made.options)}, mount.waiting.bytes(),
                               [&nodes = mount.nodes, node](std::uint64_t inode) { nodes.become_known(node, inode); });
  auto content = std::make_shared<Content>(client, entry, std::move(unsent), mount.options.rewrite_max);
  mount.nodes.look_up(made.folder, made.name, entry, number);
  mount.nodes.open(node, std::move(content));
  if (mount.waiting.add(number, {node, now()})) mount.alarm.ring();
  return entry;
}

void send_waiting(Mount& mount, unsigned number, Time open_before) {
  if (number >= mount.clients.count()) number %= mount.clients.count();
  if (mount.waiting.is_empty(number)) return;
  auto client = mount.clients.use(number);
  if (!client) return;  // they go on waiting
  std::vector<Content*> batch;
  std::unordered_set<NodeId> nodes;
  for (const Waiting::File& file : mount.waiting.of(number))
    if (prepare(mount, file, open_before, batch)) nodes.insert(file.node);
  Content::send_many(**client, batch);
  for (const NodeId node : nodes) settle(mount, node);
  mount.waiting.remove(number, nodes);
}

void send_all_waiting(Mount& mount) {
  for (unsigned number = 0; number < mount.clients.count(); ++number) send_waiting(mount, number, Time::max());
}

std::unique_lock<std::shared_mutex> lock_folders(Mount& mount) {
  if (!mount.options.lazy) return {};
  std::unique_lock lock(mount.folders);
  send_all_waiting(mount);
  return lock;
}

void send_due(Mount& mount, Time before) {
  for (unsigned number = 0; number < mount.clients.count(); ++number)
    if (mount.waiting.is_due(number, before)) send_waiting(mount, number, before);
}

}  // namespace pif::mount
