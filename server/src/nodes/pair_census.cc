#include "nodes/pair_census.h"

#include <algorithm>

#include "context/companions.h"
#include "pif/kv/value.h"
#include "pif/wire/values.h"

namespace pif::server {
namespace {

constexpr std::size_t kFilesInStep = 1000;
constexpr Duration kPause = std::chrono::seconds(5);  // between two passes

std::vector<std::uint32_t> ids_of(const std::vector<Candidate>& bevy) {
  std::vector<std::uint32_t> out;
  for (const Candidate& node : bevy) out.push_back(node.node);
  return out;
}

}  // namespace

std::vector<parity::BevyPair> default_pairs(const ServerContext& context) {
  const std::uint32_t bevy = context.config.default_bevy;
  if (bevy == 0) return {};
  const std::vector<Candidate> known = context.registry.candidates(context.now);
  auto groups = pair_up(known, std::span(&bevy, 1), on_several_machines(known));
  if (groups.empty()) groups = pair_up(known, std::span(&bevy, 1), false);  // as somebody has accepted
  std::vector<parity::BevyPair> out;
  for (const PairGroup& group : groups) out.emplace_back(ids_of(group.front().first), ids_of(group.front().second));
  return out;
}

// Bevies of another size are passed over.
Result<bool> PairCensus::is_off_pairs(ServerContext& context, std::uint64_t id, const proto::StoredFile& file) {
  if (file.state() != kCommitted) return false;
  PIF_TRY_VALUE(const auto entry, context.rows.entry(file.parent(), file.name()));
  if (!entry || entry->id() != id || entry->layout().form() != wire::kFormParity) return false;
  const auto& bevies = entry->layout().bevies();
  const auto is_default = [&](std::uint32_t size) { return size == context.config.default_bevy; };
  const bool is_sound = bevies.size() % 2 == 0 &&
                        static_cast<std::uint64_t>(entry->layout().nodes_size()) ==
                            std::uint64_t{context.config.default_bevy} * static_cast<std::uint64_t>(bevies.size());
  if (!is_sound || !std::all_of(bevies.begin(), bevies.end(), is_default)) return false;
  const std::vector<std::uint32_t> nodes(entry->layout().nodes().begin(), entry->layout().nodes().end());
  const std::vector<std::uint32_t> sizes(bevies.begin(), bevies.end());
  return !parity::lies_on_pairs(nodes, sizes, pairs_);
}

// Entries that cannot be read are named by others.
void PairCensus::step(ServerContext& context) {
  if (context.now < not_before_) return;
  if (next_ == 0) {
    pairs_ = default_pairs(context);
    found_ = 0;
  }
  std::vector<std::pair<std::uint64_t, proto::StoredFile>> page;
  bool has_more = false;
  const Status scanned =
      pairs_.empty()
          ? Status()
          : context.rows.scan(kFiles, kv::key_u64(next_), [&](std::string_view key, std::string_view stored) {
              has_more = page.size() >= kFilesInStep;
              if (has_more) return false;
              page.emplace_back(kv::u64_of_key(key), proto::StoredFile());
              page.back().second.ParseFromArray(stored.data(), static_cast<int>(stored.size()));
              return true;
            });
  for (const auto& [id, file] : page) {
    const auto is_off = is_off_pairs(context, id, file);
    found_ += is_off && *is_off ? 1 : 0;
    next_ = id + 1;
  }
  if (scanned && has_more) return;
  if (scanned) context.off_pairs = found_;
  next_ = 0;
  not_before_ = context.now + kPause;
}

}  // namespace pif::server
