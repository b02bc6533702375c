// What an LFS keeps of parity as a reader meets it: pages, their sums and vectors, and frames, of any content, and any
// fields of parity in the catalogue. Sums may be made right (something that was written wrong), so that what lies
// behind them is reached. Readers give errors, or answers of the right size, and take no memory for nonsense.
#include <cstdlib>
#include <cstring>
#include <new>

#include <spdlog/spdlog.h>

#include "../../component/src/parity/parity_entry.h"
#include "bevy_steps.h"
#include "pif/component/page_copy.h"

namespace {

std::size_t largest_new = 0;  // since somebody set it to 0

}  // namespace

// So that the target sees what readers allocate. Not inline: gcc takes free() there for a mistake.
[[gnu::noinline]] void* operator new(std::size_t size) {
  largest_new = std::max(largest_new, size);
  if (void* const out = std::malloc(size == 0 ? 1 : size)) return out;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  largest_new = std::max(largest_new, size);
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void operator delete(void* at) noexcept { std::free(at); }
[[gnu::noinline]] void operator delete(void* at, std::size_t) noexcept { std::free(at); }

namespace {

using namespace pif;
using namespace pif::component;
using fuzz::must;

constexpr FileId kFile(12);
constexpr FileId kTarget(13);
constexpr std::size_t kNewMax = 4u << 20;      // a few of the readers' windows; inputs are far shorter
constexpr std::size_t kLfsNewMax = 32u << 20;  // of its requests, too
constexpr std::size_t kLinesMax = 100;
constexpr unsigned kChangesMax = 8;
constexpr const char* kFolder = "/parity";
constexpr std::array<const char*, 3> kSuffixes = {".par", ".psum", ".pap"};

Storage& disk() {
  static const auto storage = make_memory_storage(MemoryDisk::make());
  return *storage;
}

// Row r of member m has bytes and a length that follow from both.
class KnownRows final : public RowSource {
 public:
  KnownRows(const Format& format, std::size_t member) : format_(format), member_(member) {}
  Status read(Row first, std::uint64_t count, std::uint64_t step, PackedRows& out) override {
    out = {};
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t seed = (first + i * step) * 31 + member_ * 7;
      const auto length = format_.is_fixed() ? format_.record_length : static_cast<std::uint32_t>(seed % 5);
      out.bytes.insert(out.bytes.end(), length, static_cast<std::byte>(seed));
      out.lengths.push_back(length);
    }
    return {};
  }

 private:
  const Format format_;
  const std::size_t member_;
};

struct World {
  ParityShape shape;
  std::vector<std::unique_ptr<KnownRows>> members;
  std::vector<RowSource*> sources;
  ParityFiles files;
};

std::string content(File& file) {
  const auto size = file.size();
  must(size.has_value(), "memory has a size");
  std::string out(*size, '\0');
  must(file.read(0, std::as_writable_bytes(std::span(out))).has_value(), "and can be read");
  return out;
}
void put(File& file, std::string_view bytes) {
  must(file.resize(0) && file.write(0, std::as_bytes(std::span(bytes))), "memory can be written");
}

// Pages and frames as they are written.
void write_right(World& world, fuzz::Input& in) {
  must(write_pages(world.shape, world.files, 0, in.byte() % 4, world.sources).has_value(), "pages are written");
  std::vector<NewFrame> frames(in.byte() % 4);
  const std::string_view row = in.text();
  for (std::size_t i = 0; i < frames.size(); ++i)
    frames[i] = {in.byte(), in.byte(), i, std::as_bytes(std::span(row.substr(0, row.size() * (i + 1) / 4)))};
  must(write_frames(kFile, world.files, 0, frames).has_value(), "frames are written");
}

// A change: bytes at some place, or another end.
void change(World& world, fuzz::Input& in) {
  const unsigned what = in.byte();
  const std::array<File*, 3> files = {world.files.pages.get(), world.files.sums.get(), world.files.frames.get()};
  File& file = *files[what % files.size()];
  std::string bytes = content(file);
  const std::size_t at = std::min<std::size_t>(in.word(), bytes.size());
  if ((what & 0x80) != 0)
    bytes.resize(at);
  else
    bytes.replace(at, std::min<std::size_t>(what >> 4 & 7, bytes.size() - at), in.bytes(in.byte() % 32));
  put(file, bytes);
}

// Every entry gets the sums that fit what stands there.
void make_sums_right(World& world) {
  std::string sums = content(*world.files.sums);
  const std::string pages = content(*world.files.pages);
  const std::size_t words = PageEntry::words_of(world.shape);
  std::uint64_t begin = 0;
  for (std::uint64_t page = 0; (page + 1) * words * 8 <= sums.size(); ++page) {
    std::vector<std::uint64_t> entry(words);
    char* const at = sums.data() + page * words * 8;
    std::memcpy(entry.data(), at, words * 8);
    PageEntry fields(world.shape, entry);
    const std::uint64_t end = world.shape.format.is_fixed() ? begin + fixed_page_bytes(world.shape) : fields.end();
    fields.vector_sum() = fields.sum_of_vector(kFile, page);
    if (begin <= end && end <= pages.size())
      fields.page_sum() =
          chunk_sum(kFile, kPageStream, page, std::as_bytes(std::span(pages)).subspan(begin, end - begin));
    std::memcpy(at, entry.data(), words * 8);
    begin = end;
  }
  put(*world.files.sums, sums);
}

// ---- what readers say ----

void check_page(const World& world, const Page& page) {
  must(page.vector.size() == world.shape.members(), "a vector has an entry per member");
  const bool right = world.shape.format.is_fixed() ? page.bytes.size() == fixed_page_bytes(world.shape)
                                                   : page.bytes.size() >= sizeof(PageHeader);
  must(right, "a page has its size");
}

void read_one(World& world, std::uint64_t number) {
  const auto page = read_page(world.shape, world.files, number);
  if (page) check_page(world, *page);
  const auto place = page_bytes(world.shape, world.files, number);
  must(place || !page, "a page that can be read is somewhere");
  must(!place || (place->begin <= place->end && is_page_size(world.shape, place->size())), "and has the size of one");
  must(!page || place->size() == page->bytes.size(), "its own");
  for (std::size_t lost = 0; lost < world.shape.members(); ++lost) {
    const auto rows = rebuild_stretch(world.shape, world.files, number, lost, world.sources);
    if (!rows) continue;
    must(page && rows->lengths.size() == world.shape.page_rows(), "a stretch has all its rows");
    std::uint64_t bytes = 0;
    for (const auto length : rows->lengths) bytes += length;
    must(bytes == rows->bytes.size(), "and their bytes");
  }
}

void read_frames_from(World& world, std::uint64_t begin) {
  const auto index = scan_frames(kFile, world.files, begin);
  if (!index) return;
  const std::string bytes = content(*world.files.frames);
  must(index->damages.size() <= kLinesMax, "lines have a bound");
  must(index->end % 8 == 0, "frames end at a multiple of 8");
  std::vector<Frame> all;
  for (const auto& [record, frame] : index->frames) {
    must(frame.record == record && frame.offset >= begin && frame.offset + frame.bytes <= bytes.size(),
         "a frame is in the file");
    must(index->find(record) != nullptr && index->find(record, frame.bytes) != nullptr &&
             index->find(record, frame.bytes, frame.generation) != nullptr,
         "and is found");
    std::vector<std::byte> row;
    must(read_frame(kFile, world.files, frame, row) && row.size() == frame.bytes, "and can be read");
    all.push_back(frame);
  }
  PackedRows rows;
  must(read_frames(kFile, world.files, all, rows) && rows.lengths.size() == all.size(), "all of them at once, too");
}

void copy(World& world, std::uint64_t pages) {
  auto to = open_parity(disk(), stem(kFolder, kTarget), OpenMode::kCreate);
  must(to.has_value(), "files can be made in memory");
  PageCopy copy(world.shape, world.files, kTarget, *to, pages);
  for (auto more = copy.step(1); more && *more; more = copy.step(1)) continue;
  must(copy.finish().has_value(), "memory can be cut");
  must(copy.pages() == pages || !copy.damage().empty(), "a copy that ends early says why");
  ParityShape target = world.shape;
  target.file = kTarget;
  for (std::uint64_t page = 0; page < copy.pages(); ++page)
    must(page_bytes(target, *to, page).has_value(), "what was copied is there");
}

void look_at_files(fuzz::Input& in) {
  const unsigned flags = in.byte();
  World world;
  world.shape.file = kFile;
  const unsigned length = in.word() % 5000 + 1;
  world.shape.format = (flags & 1) != 0 ? Format::fixed(length) : Format::variable();
  const unsigned members = (flags >> 1 & 3) + 1;
  for (unsigned i = 0; i < members; ++i) {
    world.shape.offsets.push_back((i + (flags >> 3)) % members);
    world.members.push_back(std::make_unique<KnownRows>(world.shape.format, i));
    world.sources.push_back(world.members.back().get());
  }
  must(disk().make_folder(stem(kFolder, kFile).substr(0, stem(kFolder, kFile).rfind('/'))).has_value() &&
           disk().make_folder(stem(kFolder, kTarget).substr(0, stem(kFolder, kTarget).rfind('/'))).has_value(),
       "folders can be made in memory");
  auto files = open_parity(disk(), stem(kFolder, kFile), OpenMode::kCreate);
  must(files.has_value(), "files can be made in memory");
  world.files = std::move(*files);
  for (File* const file : {world.files.pages.get(), world.files.sums.get(), world.files.frames.get()}) put(*file, {});
  write_right(world, in);
  for (unsigned i = in.byte() % kChangesMax; i > 0; --i) change(world, in);
  if ((flags & 0x40) != 0) make_sums_right(world);
  if ((flags & 0x80) != 0) world.files.pages.reset();
  const std::uint64_t pages = in.byte() % 8, far = in.wide(), begin = in.byte(), far_begin = in.wide();
  largest_new = 0;
  for (const std::uint64_t page : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, far}) read_one(world, page);
  for (const std::uint64_t count : {pages, far}) {
    std::vector<std::string> damages;
    must(check_parity(world.shape, world.files, count, world.sources, damages) && damages.size() <= kLinesMax,
         "a check ends");
    copy(world, count);
  }
  for (const std::uint64_t at : {begin, far_begin}) read_frames_from(world, at);
  must(largest_new <= kNewMax, "nonsense takes no memory");
}

// ---- the catalogue ----

// A file with parity as an LFS has it, made once: fixed records or lines; LFS 0's or its deputy's.
const fuzz::Root& written(std::uint64_t id) {
  static std::map<std::uint64_t, fuzz::Root> made;
  if (const auto at = made.find(id); at != made.end()) return at->second;
  const std::uint64_t records = id % 2 == 1 ? 23 : 140;
  const std::string steps = fuzz::Steps(id).put(records);
  fuzz::Companions companions(false);
  companions.set_view(fuzz::Companions::kAllMembers);
  const fuzz::Root root = companions.new_root();
  fuzz::LfsWorld world(root, companions, companions.config());
  fuzz::Input in(reinterpret_cast<const std::uint8_t*>(steps.data()), steps.size());
  while (!in.empty()) {
    const unsigned what = in.byte();
    world.step(what, in);
    world.run();
  }
  must(world.finish().empty(), "a file is written");
  return made.emplace(id, root.copy()).first->second;
}

// What may be asked of it then.
std::string asked_of(std::uint64_t id) {
  const fuzz::Steps file(id);
  const auto check = [id](proto::Envelope& e) {
    e.mutable_check_component()->set_file(id), e.mutable_check_component()->set_sums(true);
  };
  return file.reconstruct(file.member(), 0, 99, 140) + file.reconstruct(file.member(), 2, 1, 23) +
         file.attach_parity() + fuzz::manage(check) + fuzz::stored_bytes(id) + file.length(false) + file.length(true) +
         file.gather(23) + fuzz::scrub() + file.note_length(3, 30, 25) + file.append(23, 9) + fuzz::a_second() +
         file.reconstruct(file.member(), 0, 99, 32);
}

void look_at_catalogue(fuzz::Input& in) {
  const std::uint64_t id = fuzz::BevyFile::kFirst + in.byte() % fuzz::BevyFile::kCount;
  const fuzz::Root root = written(id).copy();
  const auto storage = make_memory_storage(root.disk);
  for (unsigned i = in.byte() % kChangesMax; i > 0; --i) {
    const unsigned what = in.byte();
    const std::size_t at = in.word();
    const std::string_view bytes = in.bytes(in.byte() % 64);
    root.disk->edit(stem(fuzz::kRoot, FileId(id)) + kSuffixes[what % kSuffixes.size()],
                    [&](std::vector<std::byte>& file) {
                      const auto from = std::as_bytes(std::span(bytes));
                      file.resize(std::max(std::min(at, file.size()), (what & 0x80) != 0 ? 0 : file.size()));
                      for (std::size_t k = 0; k < from.size() && at + k < file.size(); ++k) file[at + k] = from[k];
                    });
  }
  const auto catalogue = kv::open_memory(root.catalogue);
  auto state = lfs::catalogue::get(*catalogue, FileId(id));
  must(state && *state, "it is in the catalogue");
  if (!(*state)->MergeFromString(std::string(in.rest()))) return;
  (*state)->mutable_shape()->set_file(id);
  auto rows = catalogue->write();
  must(rows && lfs::catalogue::put(**rows, **state) && (*rows)->commit(), "memory can be written");
  largest_new = 0;
  (void)lfs::check_root(*storage, *catalogue, fuzz::kRoot, true);
  fuzz::Companions companions(false);
  companions.set_view(fuzz::Companions::kAllMembers);
  fuzz::LfsWorld world(root, companions, companions.config());
  const std::string steps = asked_of(id);
  fuzz::Input asked(reinterpret_cast<const std::uint8_t*>(steps.data()), steps.size());
  while (!asked.empty()) {
    const unsigned what = asked.byte();
    world.step(what, asked);
    companions.rest();
    world.run();
  }
  (void)world.finish();
  must(largest_new <= kLfsNewMax, "nonsense takes no memory");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spdlog::set_level(spdlog::level::off);
  fuzz::Input in(data, size);
  (in.byte() & 1) == 0 ? look_at_files(in) : look_at_catalogue(in);
  return 0;
}

// ---- seeds ----------------------------------------------------------------------------------------------------------

namespace {

using fuzz::Output;

constexpr unsigned kFixed = 1, kThreeMembers = 2 << 1, kRightSums = 0x40, kNoPages = 0x80;
constexpr unsigned kPar = 0, kPsum = 1, kPap = 2, kCut = 0x80, kEight = 7 << 4;

struct Change {
  unsigned what;
  unsigned at;
  std::string bytes;
};

// Three pages, three frames, then these changes.
std::string files(unsigned flags, unsigned length, const std::vector<Change>& changes, std::uint64_t far = 5) {
  Output out;
  out.byte(0).byte(flags).word(length - 1).byte(3).byte(3).text("a row that has been copied");
  for (unsigned i = 0; i < 3; ++i) out.byte(i / 2).byte(i);  // record and generation
  out.byte(static_cast<unsigned>(changes.size()));
  for (const auto& one : changes)
    out.byte(one.what).word(one.at).byte(static_cast<unsigned>(one.bytes.size())).bytes(one.bytes);
  return out.byte(3).wide(far).byte(8).wide(far * 8).str();
}

std::string catalogue(std::uint64_t id, const std::vector<Change>& changes, const proto::ComponentState& state) {
  Output out;
  out.byte(1).byte(static_cast<unsigned>(id - fuzz::BevyFile::kFirst)).byte(static_cast<unsigned>(changes.size()));
  for (const auto& one : changes)
    out.byte(one.what).word(one.at).byte(static_cast<unsigned>(one.bytes.size())).bytes(one.bytes);
  return out.bytes(state.SerializeAsString()).str();
}

proto::ComponentState state_with(const std::function<void(proto::ComponentState&)>& fill) {
  proto::ComponentState out;
  fill(out);
  return out;
}

using Seeds = std::vector<std::pair<std::string, std::string>>;

void add_file_seeds(Seeds& out) {
  const std::string far = Output().wide(~std::uint64_t{0}).str();
  const std::string zeros(8, '\0');
  for (const auto& [name, kind] : {std::pair{"fixed", kFixed}, {"variable", 0u}}) {
    const std::string is = std::string("-") + name;
    const unsigned flags = kind | kThreeMembers;
    out.emplace_back("right" + is, files(flags, 100, {}));
    out.emplace_back("far" + is, files(flags, 4096, {}, ~std::uint64_t{0}));
    out.emplace_back("page-damaged" + is, files(flags, 100, {{kPar, 30, "x"}}));
    out.emplace_back("page-other" + is, files(flags | kRightSums, 100, {{kPar | 1 << 4, 300, "x"}}));
    out.emplace_back("lengths-other" + is, files(flags | kRightSums, 100, {{kPar | kEight, 1, far}}));
    out.emplace_back("vector-other" + is, files(flags | kRightSums, 100, {{kPsum | kEight, 24, far}}));
    out.emplace_back("end-other" + is, files(flags | kRightSums, 100, {{kPsum | kEight, 16, far}}));
    out.emplace_back("cut" + is, files(flags, 100, {{kPar | kCut, 400, ""}, {kPsum | kCut, 100, ""}}));
    out.emplace_back("no-pages" + is, files(flags | kNoPages, 100, {}));
  }
  out.emplace_back("frame-torn", files(0, 1, {{kPap | kCut, 100, ""}}));
  out.emplace_back("frame-damaged", files(0, 1, {{kPap | kEight, 60, "12345678"}}));
  out.emplace_back("frame-endless", files(0, 1, {{kPap | kEight, 16, far}}));
  out.emplace_back("frame-hole", files(0, 1, {{kPap | kEight, 0, zeros}, {kPap | kEight, 8, zeros}}));
}

void add_catalogue_seeds(Seeds& out) {
  constexpr std::uint64_t kFar = ~std::uint64_t{0} >> 8;
  using State = proto::ComponentState;
  for (std::uint64_t id = fuzz::BevyFile::kFirst; id < fuzz::BevyFile::kFirst + fuzz::BevyFile::kCount; ++id) {
    const std::string is = "-" + std::to_string(id);
    out.emplace_back("state" + is, catalogue(id, {}, {}));
    out.emplace_back("state-damaged" + is, catalogue(id, {{kPar, 40, "damage"}, {kPap, 60, "damage"}}, {}));
    out.emplace_back("pages" + is, catalogue(id, {}, state_with([&](State& s) { s.set_pages(kFar); })));
    out.emplace_back("pap-begin" + is, catalogue(id, {}, state_with([&](State& s) { s.set_pap_begin(kFar); })));
  }
  const auto covered = [&](std::uint64_t first, std::uint64_t count) {
    return state_with([=](State& s) {
      s.add_covered()->set_first(first);
      s.mutable_covered(0)->set_count(count);
      s.mutable_covered(0)->set_generation(3);
    });
  };
  out.emplace_back("covered", catalogue(7, {}, covered(5, 2)));
  out.emplace_back("covered-endless", catalogue(8, {}, covered(5, kFar)));
  out.emplace_back("covered-wraps", catalogue(8, {}, covered(~std::uint64_t{0}, 2)));
  const auto published = [](std::uint64_t records) {
    return state_with([=](State& s) {
      s.mutable_published()->set_records(records);
      s.mutable_published()->set_bytes(records * 2048);
      s.mutable_parity_base()->set_records(records);
      s.set_parity_generation(9);
    });
  };
  out.emplace_back("published", catalogue(7, {}, published(40)));
  out.emplace_back("published-endless", catalogue(8, {}, published(kFar)));
  proto::ComponentState both = covered(4, kFar >> 4);
  both.MergeFrom(published(kFar >> 2));
  out.emplace_back("covered-and-published", catalogue(8, {}, both));
  const auto noted = [](State& s) {
    s.set_noted_generation(~std::uint64_t{0});
    s.mutable_noted()->set_generation(~std::uint64_t{0});
    s.mutable_noted()->mutable_file_length()->set_records(kFar);
    s.mutable_published_tickets()->add_generations(7);
  };
  out.emplace_back("noted-endless", catalogue(9, {}, state_with(noted)));
}

}  // namespace

Seeds pif::fuzz::seeds() {
  Seeds out;
  add_file_seeds(out);
  add_catalogue_seeds(out);
  return out;
}
