// Which sessions write which of the files being created, as the rows of these files say (StoredFile.members): found by
// file and by session without reading rows. In memory: filled from the rows at a start.
#pragma once

#include <cstdint>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace pif::server {

class SharedFiles {
 public:
  // The session is the file's next member. is_known: to Sessions, now.
  void add(std::uint64_t file, std::uint64_t session, bool is_known);
  // It is none after all: it was the last one added to the file.
  void remove(std::uint64_t file, std::uint64_t session);
  // The file is not being created any more.
  void forget(std::uint64_t file);

  // By number; empty: nobody shares the file.
  const std::vector<std::uint64_t>& members(std::uint64_t file) const;
  const std::set<std::uint64_t>& files_of(std::uint64_t session) const;

  // Sessions has the session from now on, or has forgotten it.
  void session_known(std::uint64_t session);
  void session_forgotten(std::uint64_t session);
  // Whether a member other than this session is of a session that is not forgotten.
  bool has_others(std::uint64_t file, std::uint64_t session) const;

 private:
  struct File {
    std::vector<std::uint64_t> members;       // sessions, by number
    std::unordered_set<std::uint64_t> known;  // of them
  };
  void leave(std::uint64_t file, std::uint64_t session);

  std::unordered_map<std::uint64_t, File> files_;
  std::unordered_map<std::uint64_t, std::set<std::uint64_t>> by_session_;  // files
};

}  // namespace pif::server
