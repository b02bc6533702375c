#include "rebuild/lacking.h"

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

Status LackingFiles::add(const std::vector<std::uint64_t>& files, std::uint32_t order) {
  PIF_ASSERT(order > 0 && !files.empty(), files.size(), order);
  if (context_.lost_files.lacking().size() + files.size() > kFilesMax)
    return fail(Code::kTooLarge,
                fmt::format("{} lacks its part of more than {} files", context_.config.name, kFilesMax));
  PIF_TRY(tell_server(files, order));
  Files all = context_.lost_files.lacking();
  for (const std::uint64_t file : files) all.try_emplace(file, order);  // the order of when it had all
  return keep(all);
}

Status LackingFiles::adopt(const Files& known) {
  Files all = context_.lost_files.lacking();
  all.insert(known.begin(), known.end());
  return all.size() > context_.lost_files.lacking().size() ? keep(all) : Status();
}

Status LackingFiles::remove(const std::vector<std::uint64_t>& files) {
  PIF_ASSERT(!files.empty());
  PIF_TRY(tell_server(files, 0));
  Files all = context_.lost_files.lacking();
  for (const std::uint64_t file : files) all.erase(file);
  return keep(all);
}

Status LackingFiles::tell_server(const std::vector<std::uint64_t>& files, std::uint32_t order) {
  for (std::size_t begin = 0; begin < files.size(); begin += kToldAtOnce) {
    net::Packet packet;
    proto::NodeLacks& word = *packet.envelope.mutable_node_lacks();
    word.set_node(context_.config.node);
    word.set_order(order);
    for (std::size_t i = begin; i < std::min(files.size(), begin + kToldAtOnce); ++i) word.add_files(files[i]);
    PIF_TRY(server_.ask(std::move(packet)));
  }
  return {};
}

// In memory at once, for nothing that is lacking may be shown; what is back only when that is durable.
Status LackingFiles::keep(const Files& all) {
  if (all.size() > context_.lost_files.lacking().size()) context_.lost_files.set_lacking(all);
  PIF_TRY(context_.batch.commit_lacking(stored_of(all)));
  context_.lost_files.set_lacking(all);
  spdlog::info("{} lacks its part of {} files", context_.config.name, all.size());
  return {};
}

}  // namespace pif::lfs
