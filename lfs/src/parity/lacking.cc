#include "parity/lacking.h"

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"

namespace pif::lfs {
namespace {

constexpr std::size_t kToldAtOnce = 4096;

}  // namespace

LostFiles::Lacking lacking_of(const proto::StoredLacking& stored) {
  LostFiles::Lacking out;
  for (const auto& one : stored.files()) out[one.file()] = std::max(one.order(), 1u);
  return out;
}

proto::StoredLacking stored_of(const LostFiles::Lacking& lacking) {
  proto::StoredLacking out;
  for (const auto& [file, order] : lacking) {
    auto& one = *out.add_files();
    one.set_file(file);
    one.set_order(order);
  }
  return out;
}

void LackingFiles::add(std::vector<std::uint64_t> files, std::uint32_t order, Done done) {
  PIF_ASSERT(!is_busy_ && order > 0 && !files.empty(), files.size(), order);
  if (context_.lost_files.lacking().size() + files.size() > kFilesMax)
    return done(
        fail(Code::kTooLarge, fmt::format("{} lacks its part of more than {} files", context_.config.name, kFilesMax)));
  is_busy_ = true;
  tell(std::move(files), order, 0, std::move(done));
}

void LackingFiles::remove(std::vector<std::uint64_t> files, Done done) {
  PIF_ASSERT(!is_busy_ && !files.empty(), files.size());
  is_busy_ = true;
  tell(std::move(files), 0, 0, std::move(done));
}

void LackingFiles::tell(std::vector<std::uint64_t> files, std::uint32_t order, std::size_t first, Done done) {
  if (first >= files.size()) {
    Files all = context_.lost_files.lacking();
    for (const std::uint64_t file : files) {
      if (order == 0) all.erase(file);
      if (order != 0) all.try_emplace(file, order);  // the order of when it had all
    }
    return keep(std::move(all), done);
  }
  const std::size_t end = std::min(files.size(), first + kToldAtOnce);
  net::Packet packet;
  proto::NodeLacks& word = *packet.envelope.mutable_node_lacks();
  word.set_node(context_.config.node);
  word.set_order(order);
  for (std::size_t i = first; i < end; ++i) word.add_files(files[i]);
  ask_(std::move(packet),
       [this, files = std::move(files), order, end, done = std::move(done)](const Result<net::Packet>& reply) mutable {
         if (reply) return tell(std::move(files), order, end, std::move(done));
         is_busy_ = false;
         done(fail(reply.error()));
       });
}

void LackingFiles::adopt(const Files& told) {
  PIF_ASSERT(!is_busy_);
  Files all = context_.lost_files.lacking();
  const std::size_t before = all.size();
  all.insert(told.begin(), told.end());
  if (all.size() > before) keep(std::move(all), [](const Status&) {});
}

// In memory at once, for nothing that is lacking may be shown; what is back only when that is durable.
void LackingFiles::keep(Files all, const Done& done) {
  is_busy_ = true;
  const bool is_more = all.size() > context_.lost_files.lacking().size();
  if (is_more) context_.lost_files.set_lacking(all);
  proto::StoredLacking stored = stored_of(all);
  context_.batch.keep_lacking(std::move(stored), [this, all = std::move(all), done](const Status& kept) {
    is_busy_ = false;
    if (kept) context_.lost_files.set_lacking(all);
    if (kept) spdlog::info("{} lacks its part of {} files", context_.config.name, all.size());
    done(kept);
  });
}

}  // namespace pif::lfs
