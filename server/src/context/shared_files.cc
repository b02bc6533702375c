#include "context/shared_files.h"

#include "pif/base/assert.h"

namespace pif::server {

void SharedFiles::add(std::uint64_t file, std::uint64_t session, bool is_known) {
  const bool is_new = by_session_[session].insert(file).second;
  PIF_ASSERT(is_new && file != 0 && session != 0, file, session);
  File& at = files_[file];
  at.members.push_back(session);
  if (is_known) at.known.insert(session);
}

void SharedFiles::remove(std::uint64_t file, std::uint64_t session) {
  const auto found = files_.find(file);
  PIF_ASSERT(found != files_.end() && found->second.members.back() == session, file, session);
  found->second.members.pop_back();
  found->second.known.erase(session);
  if (found->second.members.empty()) files_.erase(found);
  leave(file, session);
}

void SharedFiles::forget(std::uint64_t file) {
  const auto found = files_.find(file);
  if (found == files_.end()) return;
  for (const std::uint64_t session : found->second.members) leave(file, session);
  files_.erase(found);
}

void SharedFiles::leave(std::uint64_t file, std::uint64_t session) {
  const auto theirs = by_session_.find(session);
  PIF_ASSERT(theirs != by_session_.end() && theirs->second.contains(file), file, session);
  theirs->second.erase(file);
  if (theirs->second.empty()) by_session_.erase(theirs);
}

const std::vector<std::uint64_t>& SharedFiles::members(std::uint64_t file) const {
  static const std::vector<std::uint64_t> kNone;
  const auto found = files_.find(file);
  return found == files_.end() ? kNone : found->second.members;
}

const std::set<std::uint64_t>& SharedFiles::files_of(std::uint64_t session) const {
  static const std::set<std::uint64_t> kNone;
  const auto found = by_session_.find(session);
  return found == by_session_.end() ? kNone : found->second;
}

void SharedFiles::session_known(std::uint64_t session) {
  for (const std::uint64_t file : files_of(session)) files_.at(file).known.insert(session);
}

void SharedFiles::session_forgotten(std::uint64_t session) {
  for (const std::uint64_t file : files_of(session)) files_.at(file).known.erase(session);
}

bool SharedFiles::has_others(std::uint64_t file, std::uint64_t session) const {
  const auto found = files_.find(file);
  if (found == files_.end()) return false;
  const auto& known = found->second.known;
  PIF_ASSERT(known.size() <= found->second.members.size(), known.size(), found->second.members.size());
  return known.size() > (known.contains(session) ? 1u : 0u);
}

}  // namespace pif::server
