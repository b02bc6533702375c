// Files of components that no entry of the catalogue owns, put aside under ROOT/aside (docs/FORMAT.md "Files put
// aside"). They are of a create or an append that never came to its end, or of a component that was being removed. But
// the entry may have been lost, too, and then they may be the only copy. So each stays until the PIF Server has said
// what became of its file. One thread, but for
// put_aside() and remove_aside().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pif/base/ids.h"
#include "pif/component/storage.h"

namespace pif::lfs {

// One component's files of one moment.
struct AsideCopy {
  FileId file;
  std::int64_t since = 0;  // wall seconds
  auto operator<=>(const AsideCopy&) const = default;
};

// The first moment from `now` on that has no copies yet: none is ever replaced. Any thread.
[[nodiscard]] Result<std::int64_t> free_moment(component::Storage& storage, const std::string& root, std::int64_t now);
// All files of the component that are under data/ are renamed to that copy: whether there were any. Any thread.
[[nodiscard]] Result<bool> put_aside(component::Storage& storage, const std::string& root, const AsideCopy& copy);
// Their names there are durable: those under data/ may be taken again. Any thread.
[[nodiscard]] Status sync_aside(component::Storage& storage, const std::string& root, std::int64_t since);
// The same of one component at a moment that is free, durably. Nothing: it had no files. Any thread.
[[nodiscard]] Result<std::optional<AsideCopy>> put_aside_now(component::Storage& storage, const std::string& root,
                                                             FileId file, std::int64_t now);
// Bytes of rows that its files have: 0 for a file that was made and never filled. One whose size cannot be read counts
// as 1. Any thread.
[[nodiscard]] std::uint64_t row_bytes(component::Storage& storage, const std::string& root, const AsideCopy& copy);
// Its files are gone, and its folder, if nothing is left in it. Any thread.
[[nodiscard]] Status remove_aside(component::Storage& storage, const std::string& root, const AsideCopy& copy);

class Aside {
 public:
  // The PIF Server's last word about the file.
  enum class Word : std::uint8_t {
    kNone,       // it was not asked yet
    kPending,    // the file is still being made: what is sealed of it is in the catalogue
    kCommitted,  // these may be the only copy
    kUnknown,    // it does not know the file: perhaps an older directory did
    kGone,       // removed, or given up for certain
  };
  struct Moment {
    std::int64_t now = 0;     // wall seconds
    bool is_short = false;    // there is little room
    bool has_server = false;  // who could say what the files are
  };

  // Finds the copies that are there. Called at a start.
  [[nodiscard]] Status load(component::Storage& storage, const std::string& root);
  // put_aside() has put something there; remove_aside() has removed it.
  void add(const AsideCopy& copy) { copies_.insert(copy); }
  void forget(const AsideCopy& copy);

  [[nodiscard]] bool has(FileId file) const;
  // Whether a copy of it has rows: they may be the only ones that are left.
  [[nodiscard]] bool has_rows(component::Storage& storage, const std::string& root, FileId file) const;
  [[nodiscard]] const std::set<AsideCopy>& copies() const { return copies_; }
  // Takes the word about a file that has copies here. Copies of a file that was still being made, and then was
  // committed, are gone: they are of a writer whose rows did not count. A file that is gone stays gone.
  void learn(FileId file, Word word);
  // Copies that nobody needs any more, at most `most` of them. is_here: whether the catalogue has a component of the
  // file again, which was made anew since.
  [[nodiscard]] std::vector<AsideCopy> over(const Moment& moment, std::size_t most,
                                            const std::function<bool(FileId)>& is_here) const;

 private:
  std::set<AsideCopy> copies_;
  std::map<FileId, Word> words_;
};

}  // namespace pif::lfs
