#include "storage/memory_tree.h"
#include "pif/base/assert.h"

#include <algorithm>

#include <fmt/format.h>

namespace pif::component {
namespace {

Result<std::shared_ptr<Inode>> walk(const std::shared_ptr<Inode>& root, const std::vector<std::string_view>& parts,
                                    std::size_t count, std::string_view path) {
  std::shared_ptr<Inode> at = root;
  for (std::size_t i = 0; i < count; ++i) {
    if (!at->folder) return fail(Code::kNotDirectory, fmt::format("{}: a part of the path is not a folder", path));
    const auto next = at->names.find(parts[i]);
    if (next == at->names.end()) return fail(Code::kNotFound, fmt::format("{}: no such file or folder", path));
    at = next->second;
  }
  return at;
}

}  // namespace

void Inode::mark_dirty(std::size_t begin, std::size_t end) {
  PIF_ASSERT(begin <= end, begin, end);
  dirty_begin = std::min(dirty_begin, begin);
  dirty_end = std::max(dirty_end, end);
}

void Inode::sync() {
  PIF_ASSERT(!folder, bytes.size());
  durable_bytes.resize(bytes.size());
  const std::size_t end = std::min(dirty_end, bytes.size());
  if (dirty_begin < end)
    std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(dirty_begin),
              bytes.begin() + static_cast<std::ptrdiff_t>(end),
              durable_bytes.begin() + static_cast<std::ptrdiff_t>(dirty_begin));
  forget_dirty();
}

void Inode::forget_dirty() {
  dirty_begin = SIZE_MAX;
  dirty_end = 0;
}

void Inode::lose() {
  if (dirty_begin < dirty_end) lost = true;
  forget_dirty();
}

void Inode::sync_below() {
  if (!folder) return sync();
  durable_names = names;
  changes.clear();
  for (const auto& [name, inode] : names) inode->sync_below();
}

void Inode::apply(Names& names, const Change& change) {
  for (const auto& [name, inode] : change) {
    if (inode == nullptr)
      names.erase(name);
    else
      names[name] = inode;
  }
}

void Inode::change(Change change) {
  apply(names, change);
  changes.push_back(std::move(change));
}

void Inode::persist_names(const Pick& pick) {
  std::erase_if(changes, [&](const Change& change) {
    const bool written = pick(2) == 0;
    if (written) apply(durable_names, change);
    return written;
  });
}

void Inode::persist_blocks(std::size_t block_bytes, const Pick& pick) {
  if (dirty_begin > dirty_end) return;
  if (bytes.size() != durable_bytes.size() && pick(2) == 0) durable_bytes.resize(bytes.size());
  const std::size_t end = std::min({dirty_end, bytes.size(), durable_bytes.size()});
  for (std::size_t at = dirty_begin - dirty_begin % block_bytes; at < end; at += block_bytes) {
    if (pick(2) != 0) continue;
    const auto first = static_cast<std::ptrdiff_t>(at);
    const auto last = static_cast<std::ptrdiff_t>(std::min({at + block_bytes, bytes.size(), durable_bytes.size()}));
    std::copy(bytes.begin() + first, bytes.begin() + last, durable_bytes.begin() + first);
  }
}

void Inode::persist_some(std::size_t block_bytes, const Pick& pick) {
  if (!folder) return persist_blocks(block_bytes, pick);
  persist_names(pick);
  for (const auto& [name, inode] : names) inode->persist_some(block_bytes, pick);
}

std::shared_ptr<Inode> Inode::copy() const {
  auto out = std::make_shared<Inode>(folder);
  for (const auto& [name, inode] : durable_names) out->names.emplace(name, inode->copy());
  out->durable_names = out->names;
  out->bytes = durable_bytes;
  out->durable_bytes = durable_bytes;
  return out;
}

void Inode::crash() {
  bytes = durable_bytes;
  reserved = 0;
  forget_dirty();
  lost = false;
  changes.clear();
  linked = true;
  names = durable_names;
  for (const auto& [name, inode] : names) inode->crash();
}

void Inode::unlink() {
  linked = false;
  for (const auto& [name, inode] : names) inode->unlink();
}

std::uint64_t Inode::total() const {
  std::uint64_t sum = std::max(bytes.size(), reserved);
  for (const auto& [name, inode] : names) sum += inode->total();
  return sum;
}

void Inode::list_files(const std::string& path, std::vector<std::string>& out) const {
  if (!folder) out.push_back(path);
  for (const auto& [name, inode] : names) inode->list_files(path + "/" + name, out);
}

std::vector<std::string_view> path_parts(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0) parts.push_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return parts;
}

Result<std::shared_ptr<Inode>> find_inode(const std::shared_ptr<Inode>& root, std::string_view path) {
  const auto parts = path_parts(path);
  return walk(root, parts, parts.size(), path);
}

Result<std::pair<std::shared_ptr<Inode>, std::string>> find_parent(const std::shared_ptr<Inode>& root,
                                                                   std::string_view path) {
  const auto parts = path_parts(path);
  if (parts.empty()) return fail(Code::kInvalid, fmt::format("'{}' has no last part", path));
  PIF_TRY_VALUE(auto folder, walk(root, parts, parts.size() - 1, path));
  if (!folder->folder) return fail(Code::kNotDirectory, fmt::format("{}: a part of the path is not a folder", path));
  return std::pair(std::move(folder), std::string(parts.back()));
}

}  // namespace pif::component
