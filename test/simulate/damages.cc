#include "simulate/damages.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/component/component.h"
#include "pif/component/parity.h"
#include "pif/kv/value.h"
#include "pif/parity/layout.h"
#include "pif/proto/stored.pb.h"

namespace pif::simulate {

namespace {

constexpr kv::Table kComponents = 0;
constexpr std::size_t kBlocks[] = {16, 64, 512, 4096};
constexpr unsigned kTriesMax = 1000;  // of damages that would change nothing

// A bit, or the end, of anything.
template <typename Container>
void flip_bit(Container& bytes, std::uint64_t byte, unsigned bit) {
  using Byte = typename Container::value_type;
  bytes[byte] = static_cast<Byte>(static_cast<unsigned>(bytes[byte]) ^ (1u << bit));
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

}  // namespace

bool has_frames(const std::string& path) { return path.ends_with(".pap"); }

bool Image::is_used(const std::string& path, std::uint64_t byte) const {
  const auto found = unused.find(path);
  return found == unused.end() || std::none_of(found->second.begin(), found->second.end(), [byte](const Range& range) {
           return range.begin <= byte && byte < range.end;
         });
}

namespace {

// Every component has these, whatever is in them; those of parity are there if they have something that is used.
bool is_needed(const Image& image, const std::string& path, std::size_t bytes) {
  if (!path.ends_with(".par") && !path.ends_with(".psum")) return !has_frames(path);
  for (std::size_t i = 0; i < bytes; ++i)
    if (image.is_used(path, i)) return true;
  return false;
}

}  // namespace

bool differs(const Image& image, const Image& now, std::string& where) {
  for (std::size_t lfs = 0; lfs < image.files.size(); ++lfs) {
    for (const auto& [path, was] : image.files[lfs]) {
      const auto found = now.files[lfs].find(path);
      if (has_frames(path)) continue;
      where = path;
      if (found == now.files[lfs].end()) {
        if (is_needed(image, path, was.size())) return true;
        continue;
      }
      const Bytes& is = found->second;
      for (std::size_t i = 0; i < was.size(); ++i)
        if ((i >= is.size() || is[i] != was[i]) && image.is_used(path, i)) return true;
    }
  }
  return false;
}

// Where variable rows in front of this one end; UINT64_MAX: the index is hurt, and does not say.
std::uint64_t end_of_row(const std::map<std::string, Bytes>& files, const std::string& index, std::uint64_t rows) {
  if (rows == 0) return 0;
  const auto found = files.find(index);
  std::uint64_t end = UINT64_MAX;
  if (found != files.end() && found->second.size() >= rows * sizeof end)
    std::memcpy(&end, found->second.data() + (rows - 1) * sizeof end, sizeof end);
  return end;
}

// What was cancelled lies behind the published rows until new ones take its place.
void Damages::note_rows(Image& image, unsigned lfs, const proto::ComponentState& state) const {
  const FileId file(state.shape().file());
  const auto known = files_.find(file.value);
  if (known == files_.end()) return;
  const std::string stem = component::stem(cluster_.root(lfs), file);
  const auto layout = parity::Layout::make(cluster_.size(), {cluster_.size() / 2, cluster_.size() / 2});
  const std::uint64_t rows = std::min(state.rows(), layout->rows(state.shape().index(), known->second.records));
  const Format& format = known->second.format;
  const std::uint64_t bytes =
      std::min(state.bytes(),
               format.is_fixed() ? rows * format.record_length : end_of_row(image.files[lfs], stem + ".idx", rows));
  const std::uint64_t chunks = bytes / state.shape().chunk_bytes();
  constexpr std::uint64_t kEnd = ~std::uint64_t{0};
  image.unused[stem + ".dat"].push_back({bytes, kEnd});
  image.unused[stem + ".sum"].push_back({chunks * component::Shape{.form = 1}.sum_bytes(), kEnd});
  image.unused[stem + ".idx"].push_back({rows * 8, kEnd});
  image.unused[stem + ".isum"].push_back({rows * 8 / component::kIndexChunkBytes * 8, kEnd});
}

// How many published rows each of its pages has.
std::map<std::uint64_t, std::uint64_t> Damages::rows_of_pages(LfsIndex keeper, const KnownFile& file,
                                                              std::uint64_t page_rows) const {
  const auto layout = parity::Layout::make(cluster_.size(), {cluster_.size() / 2, cluster_.size() / 2});
  std::map<std::uint64_t, std::uint64_t> out;
  for (RecordNumber record = 0; record < file.whole; ++record)
    if (const Cell cell = layout->parity_of(layout->locate(record)); cell.lfs == keeper) ++out[cell.row / page_rows];
  return out;
}

// Pages of fixed records have their places, also where there is none: its rows are in frames. Those of variable ones
// follow one another.
void Damages::note_pages(Image& image, unsigned lfs, const proto::ComponentState& state) const {
  const FileId file(state.shape().file());
  const std::string stem = component::stem(cluster_.root(lfs), file);
  const auto sums = image.files[lfs].find(stem + ".psum");
  if (sums == image.files[lfs].end()) return;
  const std::uint32_t length = state.shape().format().record_length();
  const Format format = length > 0 ? Format::fixed(length) : Format::variable();
  const component::ParityShape shape{file, format, std::vector<std::uint32_t>(cluster_.size() / 2 - 1)};
  const std::uint64_t page_bytes = shape.page_rows() * length;
  const std::uint64_t entry_bytes = (length > 0 ? 16 : 24) + 16 * shape.members();
  const auto known = files_.find(file.value);
  if (known == files_.end()) return;
  const auto rows = rows_of_pages(state.shape().index(), known->second, shape.page_rows());
  std::uint64_t end = 0;  // of variable ones
  for (std::uint64_t page = 0; page * entry_bytes < sums->second.size(); ++page) {
    const auto has_it = [page](const auto& one) { return one.first() <= page && page - one.first() < one.count(); };
    const auto found = rows.find(page);
    const bool is_full = found != rows.end() && found->second == shape.page_rows() * shape.members();
    const bool is_there = page < state.pages() || std::any_of(state.covered().begin(), state.covered().end(), has_it);
    if (is_there && is_full) {
      if (length == 0) std::memcpy(&end, sums->second.data() + page * entry_bytes + 16, sizeof end);
      continue;
    }
    image.unused[stem + ".psum"].push_back({page * entry_bytes, (page + 1) * entry_bytes});
    if (length > 0) image.unused[stem + ".par"].push_back({page * page_bytes, (page + 1) * page_bytes});
  }
  if (length > 0) end = sums->second.size() / entry_bytes * page_bytes;  // what is behind has no entry
  image.unused[stem + ".par"].push_back({end, ~std::uint64_t{0}});
}

void Damages::note_unused(Image& image, unsigned lfs, std::string_view value) const {
  const auto payload = kv::open_value(value, "an entry");
  proto::StoredComponent stored;
  if (!payload || !stored.ParseFromArray(payload->data(), static_cast<int>(payload->size()))) return;
  note_rows(image, lfs, stored.state());
  note_pages(image, lfs, stored.state());
}

Image Damages::take() const {
  Image image;
  for (unsigned lfs = 0; lfs < cluster_.size(); ++lfs) {
    auto& files = image.files.emplace_back();
    auto& disk = cluster_.disk(lfs);
    for (const auto& path : disk.files(cluster_.root(lfs) + "/data"))
      disk.edit(path, [&](Bytes& bytes) { files[path] = bytes; });
    auto& entries = image.entries.emplace_back();
    const auto store = cluster_.open_catalogue(lfs);
    if (auto transaction = store->read())
      (void)(*transaction)->scan(kComponents, {}, [&](std::string_view key, std::string_view value) {
        note_unused(image, lfs, value);
        return entries.emplace(key, value).second;
      });
  }
  return image;
}

// edit() does it more than once: to what is durable, too.
void Damages::write(unsigned lfs, const std::string& path, const Bytes& bytes) {
  const auto storage = cluster_.open_disk(lfs);
  const auto made = storage->open(path, component::OpenMode::kCreate);
  PIF_ASSERT(made.has_value() && storage->sync_folder(folder_of(path)).has_value(), lfs);
  cluster_.disk(lfs).edit(path, [&](Bytes& out) { out = bytes; });
}

void Damages::remove(unsigned lfs, const std::string& path) {
  const auto storage = cluster_.open_disk(lfs);
  const Status done = storage->remove(path).and_then([&] { return storage->sync_folder(folder_of(path)); });
  PIF_ASSERT(done.has_value(), lfs);
}

void Damages::put_back(const Image& image) {
  for (unsigned lfs = 0; lfs < cluster_.size(); ++lfs)
    for (const auto& [path, was] : image.files[lfs]) write(lfs, path, was);
}

// ---- files ----

bool Damages::flip(Bytes& bytes, std::string& what) {
  const std::uint64_t byte = dice_.below(bytes.size());
  const auto bit = static_cast<unsigned>(dice_.below(8));
  flip_bit(bytes, byte, bit);
  what = fmt::format("bit {} of byte {} flips", bit, byte);
  return true;
}

bool Damages::cut(Bytes& bytes, std::string& what) {
  const std::size_t left = dice_.chance(30) ? bytes.size() - 1 : dice_.below(bytes.size());
  what = fmt::format("{} of {} bytes are left", left, bytes.size());
  bytes.resize(left);
  return true;
}

// With a block of the same file, or of another one of this LFS.
bool Damages::swap(unsigned lfs, const std::string& path, Bytes& bytes, std::string& what) {
  auto& disk = cluster_.disk(lfs);
  const auto paths = disk.files(cluster_.root(lfs) + "/data");
  const std::string other = dice_.chance(50) ? path : paths[dice_.below(paths.size())];
  Bytes own;
  disk.edit(other, [&](Bytes& there) { own = there; });
  Bytes& there = other == path ? bytes : own;
  if (there.empty()) return false;
  const std::size_t size = std::min({kBlocks[dice_.below(std::size(kBlocks))], bytes.size(), there.size()});
  const std::size_t to = dice_.below(bytes.size() / size) * size, from = dice_.below(there.size() / size) * size;
  if (std::equal(bytes.begin() + static_cast<std::ptrdiff_t>(to),
                 bytes.begin() + static_cast<std::ptrdiff_t>(to + size),
                 there.begin() + static_cast<std::ptrdiff_t>(from)))
    return false;
  std::swap_ranges(bytes.begin() + static_cast<std::ptrdiff_t>(to),
                   bytes.begin() + static_cast<std::ptrdiff_t>(to + size),
                   there.begin() + static_cast<std::ptrdiff_t>(from));
  if (other != path) write(lfs, other, there);
  what = fmt::format("{} bytes at {} change places with those at {} of {}", size, to, from, other);
  return true;
}

// What was not there then is zeros.
bool Damages::make_stale(unsigned lfs, const std::string& path, Bytes& bytes, std::string& what) {
  if (old_.empty()) return false;
  const std::size_t age = dice_.below(old_.size());
  const auto& files = old_[age].files[lfs];
  const auto found = files.find(path);
  const std::size_t size = kBlocks[dice_.below(std::size(kBlocks))];
  const std::size_t begin = dice_.below((bytes.size() + size - 1) / size) * size;
  const std::size_t end = std::min(begin + size, bytes.size());
  const Bytes before = bytes;
  for (std::size_t i = begin; i < end; ++i)
    bytes[i] = found != files.end() && i < found->second.size() ? found->second[i] : std::byte{0};
  what = fmt::format("bytes {} to {} are those of moment {}", begin, end, age);
  return bytes != before;
}

// A whole chunk of rows.
bool Damages::forge(const Image& now, unsigned lfs, Damage& damage) {
  if (files_.empty()) return false;
  const auto known = std::next(files_.begin(), static_cast<std::ptrdiff_t>(dice_.below(files_.size())));
  const FileId file(known->first);
  const Format& format = known->second.format;
  const auto shape = component::Shape::of(file, format, 1);
  const std::string stem = component::stem(cluster_.root(lfs), file);
  const auto found = now.files[lfs].find(stem + ".dat");
  const auto summed = now.files[lfs].find(stem + ".sum");
  if (found == now.files[lfs].end() || summed == now.files[lfs].end()) return false;
  // A file may have been made shorter, or be longer than its sums.
  const std::uint64_t chunks =
      std::min(found->second.size() / shape.chunk_bytes, summed->second.size() / shape.sum_bytes());
  if (chunks == 0) return false;
  const std::uint64_t chunk = dice_.below(chunks);
  Bytes data = found->second, sums = summed->second;
  const auto forged = std::span(data).subspan(chunk * shape.chunk_bytes, shape.chunk_bytes);
  flip_bit(forged, dice_.below(forged.size()), static_cast<unsigned>(dice_.below(8)));
  const std::uint64_t sum = shape.data_sum(chunk, forged);
  std::memcpy(sums.data() + chunk * shape.sum_bytes(), &sum, sizeof sum);
  write(lfs, stem + ".dat", data);
  write(lfs, stem + ".sum", sums);
  damage = {lfs, stem + ".dat", fmt::format("chunk {} is another one, and so is its sum", chunk), true};
  return true;
}

bool Damages::change(const Image& now, bool may_forge, unsigned lfs, const std::string& path, Damage& damage) {
  Bytes bytes = now.files[lfs].at(path);
  damage.lfs = lfs;
  damage.path = path;
  const auto how = dice_.below(11);
  if (how == 10) {
    damage.what = fmt::format("the file of {} bytes is removed", bytes.size());
    remove(lfs, path);
    return true;
  }
  if (bytes.empty()) return false;
  if (how == 0 && may_forge && forge(now, lfs, damage)) return true;
  const bool done = how < 4   ? flip(bytes, damage.what)
                    : how < 5 ? cut(bytes, damage.what)
                    : how < 7 ? swap(lfs, path, bytes, damage.what)
                              : make_stale(lfs, path, bytes, damage.what);
  if (!done) return false;
  write(lfs, path, bytes);
  return true;
}

Damage Damages::strike(const Image& now, bool may_forge, std::optional<unsigned> not_at) {
  for (unsigned i = 0; i < kTriesMax; ++i) {
    const auto lfs = static_cast<unsigned>(dice_.below(cluster_.size()));
    const auto& files = now.files[lfs];
    if (files.empty() || not_at == lfs) continue;
    const auto file = std::next(files.begin(), static_cast<std::ptrdiff_t>(dice_.below(files.size())));
    Damage damage;
    if (change(now, may_forge, lfs, file->first, damage)) return damage;
  }
  PIF_ASSERT(false, now.files.size());
  return {};
}

// ---- catalogues ----

void Damages::edit_entry(unsigned lfs, const std::string& key, const std::string& value) {
  const auto store = cluster_.open_catalogue(lfs);
  auto transaction = store->write();
  PIF_ASSERT(transaction.has_value(), lfs);
  const Status done = (*transaction)->put(kComponents, key, value).and_then([&] { return (*transaction)->commit(); });
  PIF_ASSERT(done.has_value(), lfs);
}

void Damages::erase_entry(unsigned lfs, const std::string& key) {
  const auto store = cluster_.open_catalogue(lfs);
  auto transaction = store->write();
  PIF_ASSERT(transaction.has_value(), lfs);
  const Status done = (*transaction)->erase(kComponents, key).and_then([&] { return (*transaction)->commit(); });
  PIF_ASSERT(done.has_value(), lfs);
}

void Damages::remove_component(const Image& now, unsigned lfs, FileId file) {
  const std::string stem = component::stem(cluster_.root(lfs), file) + ".";
  for (const auto& [path, bytes] : now.files[lfs])
    if (path.starts_with(stem)) remove(lfs, path);
}

Damage Damages::strike_entry(const Image& now, unsigned lfs) {
  const auto& entries = now.entries[lfs];
  PIF_ASSERT(!entries.empty(), lfs);
  const auto& [key, was] = *std::next(entries.begin(), static_cast<std::ptrdiff_t>(dice_.below(entries.size())));
  Damage damage{lfs, {}, {}, false};
  std::string value = was;
  const auto how = dice_.below(6);
  if (how >= 4) {
    damage.is_lost = true;
    damage.what = how == 4 ? "it is gone" : "it is gone, and the component's files, too";
    erase_entry(lfs, key);
    if (how == 5) remove_component(now, lfs, FileId(kv::u64_of_key(key)));
    return damage;
  }
  if (how == 0) {
    value.resize(dice_.below(value.size()));
    damage.what = fmt::format("{} of {} bytes are left", value.size(), was.size());
  } else if (how == 1 && entries.size() > 1) {
    for (const auto& [other, bytes] : entries)
      if (other != key) value = bytes;
    damage.what = "it is another file's";
  } else if (how == 2 && value.size() > 16) {
    std::swap_ranges(value.begin(), value.begin() + 8, value.end() - 8);
    damage.what = "its ends change places";
  }
  if (value == was) {
    const std::uint64_t byte = dice_.below(value.size());
    flip_bit(value, byte, static_cast<unsigned>(dice_.below(8)));
    damage.what = fmt::format("a bit of byte {} flips", byte);
  }
  edit_entry(lfs, key, value);
  return damage;
}

void Damages::put_entries_back(const Image& image, unsigned lfs) {
  for (const auto& [key, value] : image.entries[lfs]) edit_entry(lfs, key, value);
}

}  // namespace pif::simulate
