// What an LFS that lost its disk asks for: the files whose rows or parity it had.
#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "context/server_context.h"
#include "pif/base/assert.h"
#include "pif/kv/value.h"
#include "pif/wire/values.h"

namespace pif::server {
namespace {

constexpr std::uint32_t kFilesMax = 4096;       // of a reply
constexpr std::size_t kReplyBytes = 60u << 10;  // so that it fits every transport
constexpr std::size_t kLooksMax = 4096;         // rows of one request: others wait meanwhile

bool is_on(std::uint32_t node, const proto::FileLayout& layout) {
  const auto& nodes = layout.nodes();
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

// Of a file that has a name, or that somebody has open: both are served.
Result<std::optional<proto::StoredEntry>> entry_of(ServerContext& context, std::uint64_t id,
                                                   const proto::StoredFile& file) {
  if (is_open_still(context, id, file)) return file.entry();
  if (file.state() != kCommitted) return std::optional<proto::StoredEntry>{};
  PIF_TRY_VALUE(auto entry, context.rows.entry(file.parent(), file.name()));
  if (entry && entry->id() != id) entry.reset();
  return entry;
}

void describe(ServerContext& context, const proto::StoredFile& file, const proto::StoredEntry& entry,
              std::unordered_map<std::uint64_t, std::string>& folders, std::uint32_t node,
              proto::ListLostReply::One& to) {
  const auto folder = context.directory.path_of(file.parent(), folders);
  to.set_file(entry.id());
  to.set_path(fmt::format("{}/{}{}", folder ? *folder : std::string("(removed folder)"), file.name(),
                          file.state() == kDoomed ? " (removed, and still open)" : ""));
  *to.mutable_format() = entry.format();
  *to.mutable_layout() = entry.layout();
  *to.mutable_file_length() = entry.file_length();
  to.set_epoch(entry.epoch());
  to.set_owner(entry.attributes().owner());
  to.set_untouched(file.state() == kCommitted && (file.untouched() || file.bare()));
  *to.mutable_lacking() = file.lacking();
  to.set_given_up(std::any_of(entry.marks().begin(), entry.marks().end(), [node](const proto::FileMark& mark) {
    return mark.node() == node && mark.kind() == wire::kMarkLost;
  }));
}

void set_lack(proto::StoredFile& file, std::uint32_t node, std::uint32_t order) {
  auto& lacking = *file.mutable_lacking();
  for (int i = 0; i < lacking.size(); ++i) {
    if (lacking[i].node() != node) continue;
    if (order == 0) lacking.DeleteSubrange(i, 1);
    return;  // the order that it had first is that of when it had all
  }
  if (order == 0) return;
  proto::FileLack& lack = *lacking.Add();
  lack.set_node(node);
  lack.set_order(order);
}

// Files that are gone are passed over.
Status node_lacks(ServerContext& context, Call&, const proto::NodeLacks& ask) {
  PIF_TRY(known_node(context, ask.node()));
  if (ask.files_size() > static_cast<int>(kFilesMax))
    return fail(Code::kTooLarge, fmt::format("{} files in one request, the limit is {}", ask.files_size(), kFilesMax));
  for (const std::uint64_t id : ask.files()) {
    PIF_TRY_VALUE(auto file, context.rows.file(id));
    ++context.weight;
    if (!file || file->state() == kPending) continue;
    set_lack(*file, ask.node(), ask.order());
    PIF_TRY(context.rows.put_file(id, *file));
  }
  return {};
}

Status list_lost(ServerContext& context, Call&, const proto::ListLost& ask, proto::ListLostReply& reply) {
  reply.set_last(ask.after());
  if (ask.after() == UINT64_MAX) return {};  // no id is greater
  const std::uint32_t limit = ask.limit() == 0 ? kFilesMax : std::min(ask.limit(), kFilesMax);
  std::vector<std::pair<std::uint64_t, proto::StoredFile>> page;
  PIF_TRY(context.rows.scan(kFiles, kv::key_u64(ask.after() + 1), [&](std::string_view key, std::string_view stored) {
    reply.set_more(page.size() >= kLooksMax);
    if (reply.more()) return false;
    page.emplace_back(kv::u64_of_key(key), proto::StoredFile());
    page.back().second.ParseFromArray(stored.data(), static_cast<int>(stored.size()));
    return true;
  }));
  std::unordered_map<std::uint64_t, std::string> folders;
  std::size_t bytes = 0;
  for (const auto& [id, file] : page) {
    if (reply.files_size() >= static_cast<int>(limit) || bytes >= kReplyBytes) {
      reply.set_more(true);
      break;
    }
    reply.set_last(id);
    ++context.weight;
    PIF_TRY_VALUE(const auto entry, entry_of(context, id, file));
    if (!entry || entry->layout().form() != wire::kFormParity) continue;
    if (!is_on(ask.node(), entry->layout())) continue;
    describe(context, file, *entry, folders, ask.node(), *reply.add_files());
    bytes += reply.files().rbegin()->ByteSizeLong() + 8;
  }
  PIF_ASSERT(reply.last() >= ask.after(), reply.last(), ask.after());
  return {};
}

}  // namespace

void bind_lost_files(Operations& operations) {
  operations.bind<list_lost>(kWhileHeld);
  operations.bind<node_lacks>();
}

}  // namespace pif::server
