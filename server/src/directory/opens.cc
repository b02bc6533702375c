#include "directory/opens.h"

#include <algorithm>

#include "pif/base/assert.h"

namespace pif::server {

const Holder* Opens::conflict(std::uint64_t file, std::uint64_t session, std::uint32_t rights, bool hold) const {
  const auto found = files_.find(file);
  if (found == files_.end()) return nullptr;
  for (const Holder& holder : found->second) {
    if (holder.session == session) continue;
    if (holder.hold && (rights & kMayWrite) != 0) return &holder;
    if (hold && (holder.rights & kMayWrite) != 0) return &holder;
  }
  return nullptr;
}

const Holder* Opens::find(std::uint64_t file, std::uint64_t session) const {
  const auto found = files_.find(file);
  if (found == files_.end()) return nullptr;
  const auto holder = std::find_if(found->second.begin(), found->second.end(),
                                   [session](const Holder& h) { return h.session == session; });
  return holder == found->second.end() ? nullptr : &*holder;
}

void Opens::add(std::uint64_t file, std::uint64_t session, std::uint32_t rights, bool hold, bool again,
                std::int64_t wall) {
  auto* holder = const_cast<Holder*>(find(file, session));
  if (holder == nullptr) {
    holder = &files_[file].emplace_back(Holder{.session = session});
    const bool is_new = by_session_[session].insert(file).second;
    PIF_ASSERT(is_new, file, session);
    again = false;
  }
  if (!again) ++holder->count;
  PIF_ASSERT(holder->count > 0, file, session);
  holder->rights |= rights;
  holder->hold |= hold;
  holder->expiry = wall + kLeaseSeconds;
}

std::size_t Opens::count_of(std::uint64_t session) const {
  const auto found = by_session_.find(session);
  return found == by_session_.end() ? 0 : found->second.size();
}

std::vector<std::uint64_t> Opens::written_by(std::uint64_t session) const {
  std::vector<std::uint64_t> files;
  const auto found = by_session_.find(session);
  if (found == by_session_.end()) return files;
  for (const std::uint64_t file : found->second) {
    const Holder* const holder = find(file, session);
    PIF_ASSERT(holder != nullptr, file, session);
    if ((holder->rights & kMayWrite) != 0) files.push_back(file);
  }
  return files;
}

void Opens::restore(std::uint64_t file, Holder holder) {
  PIF_ASSERT(find(file, holder.session) == nullptr && holder.count > 0, file, holder.session, holder.count);
  const bool is_new = by_session_[holder.session].insert(file).second;
  PIF_ASSERT(is_new, file, holder.session);
  files_[file].push_back(holder);
}

bool Opens::remove(std::uint64_t file, std::uint64_t session) {
  const auto found = files_.find(file);
  PIF_ASSERT(found != files_.end(), file, session);
  const std::size_t erased = std::erase_if(found->second, [&](const Holder& holder) {
    if (holder.session != session) return false;
    if (holder.hold) ended_holds_.push_back({file, session});
    return true;
  });
  PIF_ASSERT(erased == 1, file, session, erased);
  const bool last = found->second.empty();
  if (last) files_.erase(found);
  return last;
}

void Opens::forget(std::uint64_t file, const Holder& holder) {
  const auto files = by_session_.find(holder.session);
  const std::size_t erased = files == by_session_.end() ? 0 : files->second.erase(file);
  PIF_ASSERT(erased == 1, file, holder.session);
  if (files->second.empty()) by_session_.erase(files);
}

bool Opens::close(std::uint64_t file, std::uint64_t session) {
  auto* holder = const_cast<Holder*>(find(file, session));
  if (holder == nullptr) return false;
  PIF_ASSERT(holder->count > 0, file, session);
  if (--holder->count > 0) return false;
  forget(file, *holder);
  return remove(file, session);
}

std::vector<std::uint64_t> Opens::close_all(std::uint64_t session) {
  std::vector<std::uint64_t> closed;
  const auto files = by_session_.extract(session);
  if (files.empty()) return closed;
  for (const std::uint64_t file : files.mapped()) {
    if (remove(file, session)) closed.push_back(file);
  }
  return closed;
}

std::vector<std::uint64_t> Opens::expire(std::int64_t wall) {
  std::vector<std::uint64_t> closed;
  for (auto file = files_.begin(); file != files_.end();) {
    PIF_ASSERT(!file->second.empty(), file->first);
    std::erase_if(file->second, [&](const Holder& holder) {
      if (holder.expiry >= wall) return false;
      forget(file->first, holder);
      if (holder.hold) ended_holds_.push_back({file->first, holder.session});
      return true;
    });
    if (file->second.empty()) {
      closed.push_back(file->first);
      file = files_.erase(file);
    } else {
      ++file;
    }
  }
  return closed;
}

}  // namespace pif::server
