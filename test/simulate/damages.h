// What disks do to bytes that lie on them: bits flip, files end early or are gone, blocks come to lie elsewhere, or are
// again what they were some time ago. Done to files of components, and to a catalogue's entries of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pif/base/format.h"
#include "pif/base/ids.h"
#include "pif/proto/stored.pb.h"
#include "sim/cluster.h"
#include "simulate/plan.h"

namespace pif::simulate {

using Bytes = std::vector<std::byte>;

// All that LFSs have in files of components.
struct Image {
  std::vector<std::map<std::string, Bytes>> files;          // by LFS and path
  std::vector<std::map<std::string, std::string>> entries;  // of the catalogues, by LFS and key
  std::map<std::string, std::vector<Range>> unused;  // by path: what was cancelled, and pages that were never made

  bool is_used(const std::string& path, std::uint64_t byte) const;
};

// Whether a byte that is used is another one there, or not there, and in which file. Frames are left out:
// which of them are used is not known here.
bool differs(const Image& image, const Image& now, std::string& where);

struct Damage {
  unsigned lfs = 0;
  std::string path;        // the first file that is hurt; of a catalogue: empty
  std::string what;        // for people
  bool is_hidden = false;  // its sum holds: only others can tell
  bool is_lost = false;    // an entry of a catalogue, which is not there any more
};

class Damages {
 public:
  Damages(sim::Cluster& cluster, Dice& dice) : cluster_(cluster), dice_(dice) {}

  Image take() const;
  // What stale blocks come from. Images of rising age of the same file system.
  void remember(Image image) { old_.push_back(std::move(image)); }
  // Files whose chunks may be forged: new bytes with a sum that holds.
  // whole: its published records that are not short.
  void know(FileId file, const Format& format, std::uint64_t records, std::uint64_t whole) {
    files_.insert_or_assign(file.value, KnownFile{format, records, whole});
  }

  // One damage to one LFS's files, which changes something. not_at: another LFS than this one. may_forge: also rows
  // whose sums hold, which only others can tell from those that were written.
  Damage strike(const Image& now, bool may_forge, std::optional<unsigned> not_at = {});
  // One damage to an entry of a catalogue, whose LFS does not run.
  Damage strike_entry(const Image& now, unsigned lfs);
  // The files, or the entries of one LFS that does not run, are again as they were.
  void put_back(const Image& image);
  void put_entries_back(const Image& image, unsigned lfs);

 private:
  struct KnownFile {
    Format format;
    std::uint64_t records = 0, whole = 0;
  };
  void note_pages(Image& image, unsigned lfs, const proto::ComponentState& state) const;
  std::map<std::uint64_t, std::uint64_t> rows_of_pages(LfsIndex keeper, const KnownFile& file,
                                                       std::uint64_t page_rows) const;
  void note_rows(Image& image, unsigned lfs, const proto::ComponentState& state) const;
  void note_unused(Image& image, unsigned lfs, std::string_view value) const;
  bool change(const Image& now, bool may_forge, unsigned lfs, const std::string& path, Damage& damage);
  bool flip(Bytes& bytes, std::string& what);
  bool cut(Bytes& bytes, std::string& what);
  bool swap(unsigned lfs, const std::string& path, Bytes& bytes, std::string& what);
  bool make_stale(unsigned lfs, const std::string& path, Bytes& bytes, std::string& what);
  bool forge(const Image& now, unsigned lfs, Damage& damage);
  void write(unsigned lfs, const std::string& path, const Bytes& bytes);
  void remove(unsigned lfs, const std::string& path);
  void remove_component(const Image& now, unsigned lfs, FileId file);
  void erase_entry(unsigned lfs, const std::string& key);
  void edit_entry(unsigned lfs, const std::string& key, const std::string& value);

  sim::Cluster& cluster_;
  Dice& dice_;
  std::vector<Image> old_;
  std::map<std::uint64_t, KnownFile> files_;
};

// What files of frames have of no use is not looked at, nor made again as it was.
bool has_frames(const std::string& path);

}  // namespace pif::simulate
