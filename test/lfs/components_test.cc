// The table of components: what of it stays in memory, and how many files are open.
#include "node.h"

#include "../../lfs/src/components/components.h"
#include "../../lfs/src/store/catalogue.h"

using namespace pif;
using namespace pif::lfs;
using namespace pif::lfs::test;

namespace {

class HandClock final : public Clock {
 public:
  Time now() const override { return Time{}; }
  std::int64_t wall_seconds() const override { return 0; }
};

struct Table {
  Table() { REQUIRE_OK(storage->make_folder("/lfs0/data")); }

  proto::ComponentShape shape(std::uint64_t file) {
    TestFile out;
    out.id = file;
    return out.shape();
  }
  // Entries 1 to count of the catalogue, without files.
  void put(std::uint64_t count) {
    auto transaction = store->write().value();
    for (std::uint64_t file = 1; file <= count; ++file) {
      proto::ComponentState state;
      *state.mutable_shape() = shape(file);
      state.set_state(kCommitted);
      REQUIRE_OK(lfs::catalogue::put(*transaction, state));
    }
    REQUIRE_OK(transaction->commit());
  }
  ComponentPtr make(std::uint64_t file) { return components.create(shape(file), 1, Time{}).value(); }
  // Written, sealed and in the catalogue: nothing of it is in memory only.
  void settle(Component& component) {
    components.drop_writer(component);
    auto state = component.state;
    state.set_state(kCommitted);
    components.set_state(component, state);
  }

  // Files 1 to 3, for different changes.
  std::vector<LockedComponent> lock_three() {
    std::vector<LockedComponent> out;
    for (const Mode mode : {Mode::kAppend, Mode::kCheckpoint, Mode::kOverwrite}) {
      const auto component = components.find_in_memory(FileId(out.size() + 1));
      out.push_back({component, component->lock.try_acquire(mode)});
    }
    return out;
  }

  std::shared_ptr<component::MemoryDisk> disk = component::MemoryDisk::make();
  std::unique_ptr<component::Storage> storage = component::make_memory_storage(disk);
  std::shared_ptr<kv::MemoryState> kept = kv::make_memory_state(static_cast<unsigned>(kCatalogueTables.size()));
  std::unique_ptr<kv::Store> store = kv::open_memory(kept);
  Numbers numbers;
  HandClock clock;
  daemon::Fibers fibers{clock};
  Components components{"/lfs0", *storage, *store, numbers, fibers};
};

}  // namespace

TEST_CASE("of many components those that nobody uses are forgotten; one that is held stays the only one of its file") {
  Table table;
  const std::uint64_t count = Components::kKnownMax + 10;
  table.put(count);
  const auto held = table.components.find(FileId(5)).value();
  for (std::uint64_t file = 1; file < count; ++file) REQUIRE_OK(table.components.find(FileId(file)));
  const auto pinned = table.components.find(FileId(count)).value().get();
  const auto lock = pinned->lock.try_acquire(Mode::kOverwrite);
  table.components.evict();
  CHECK(table.components.find_in_memory(FileId(6)) == nullptr);
  CHECK(table.components.find_in_memory(FileId(count)).get() == pinned);
  CHECK(table.components.find(FileId(5)).value() == held);
  REQUIRE_OK(table.components.find(FileId(6)));
}

TEST_CASE("what is busy in any way is not forgotten") {
  using Busy = std::function<void(Component&)>;
  const Busy busy[] = {
      [](Component& c) { c.catalogued = false; },
      [](Component& c) {
        c.set_failed({Code::kIo, "it failed", {}});
      },
      [](Component& c) { c.dirty = true; },
      [](Component& c) { c.applied = 1; },
  };
  Table table;
  std::vector<ComponentLock::Held> locks;
  const std::uint64_t count = Components::kKnownMax + 1;
  table.put(count);
  for (std::uint64_t file = 1; file <= count; ++file) REQUIRE_OK(table.components.find(FileId(file)));
  std::uint64_t file = 0;
  for (const auto& make_busy : busy) make_busy(*table.components.find_in_memory(FileId(++file)));
  for (unsigned mode = 0; mode < kModes; ++mode)
    locks.push_back(table.components.find_in_memory(FileId(++file))->lock.try_acquire(static_cast<Mode>(mode)));
  table.components.evict();
  for (std::uint64_t one = 1; one <= file; ++one) CHECK(table.components.find_in_memory(FileId(one)) != nullptr);
  CHECK(table.components.find_in_memory(FileId(file + 1)) == nullptr);
}

TEST_CASE("over the limit the longest unused components lose their open files, those in use do not") {
  Table table;
  const std::uint64_t count = Components::kOpenFilesMax + 10;
  for (std::uint64_t file = 1; file <= count; ++file) {
    const auto made = table.make(file);
    if (file != 4 && file != 5) table.settle(*made);
  }
  const auto is_open = [&](std::uint64_t file) {
    return table.components.find_in_memory(FileId(file))->mode.has_value();
  };
  const auto locks = table.lock_three();
  REQUIRE_OK(
      table.components.open_writer(*table.components.find_in_memory(FileId(4))));  // 5 is open, too, but not written
  REQUIRE_OK(table.components.find(FileId(6)));                                    // used just now
  table.components.evict();
  for (const std::uint64_t file : {1, 2, 3, 4, 6}) CHECK(is_open(file));
  CHECK_FALSE(is_open(5));
  std::uint64_t left = 0;
  for (std::uint64_t file = 1; file <= count; ++file) left += is_open(file) ? 1 : 0;
  CHECK(left == Components::kOpenFilesMax);
}

TEST_CASE("at most so many components are written by message at once") {
  Table table;
  for (std::uint64_t file = 1; file <= Components::kWritersMax; ++file)
    REQUIRE_OK(table.components.open_writer(*table.make(file)));
  const auto one_more = table.make(Components::kWritersMax + 1);
  CHECK(code_of(table.components.open_writer(*one_more)) == Code::kBusy);
  REQUIRE_OK(table.components.open_writer(*table.components.find_in_memory(FileId(1))));  // has its writer
  table.components.drop_writer(*table.components.find_in_memory(FileId(1)));
  REQUIRE_OK(table.components.open_writer(*one_more));
}

TEST_CASE("whoever is written next gets the place of the writer that was unused for longest, but not of one in use") {
  Table table;
  const auto is_written = [&](std::uint64_t file) {
    return table.components.find_in_memory(FileId(file))->writer.has_value();
  };
  for (std::uint64_t file = 1; file <= Components::kWritersMax; ++file) {
    const auto component = table.make(file);
    REQUIRE_OK(table.components.open_writer(*component));
    if (file <= 4) {
      auto state = component->state;
      state.set_state(kCommitted);
      table.components.set_state(*component, state);
    }
  }
  const auto locks = table.lock_three();
  REQUIRE_OK(table.components.open_writer(*table.make(Components::kWritersMax + 1)));
  CHECK_FALSE(is_written(4));
  for (const std::uint64_t file : {1, 2, 3, 5}) CHECK(is_written(file));
  CHECK(code_of(table.components.open_writer(*table.make(Components::kWritersMax + 2))) == Code::kBusy);
}

TEST_CASE("of removed components the last ones are remembered as removed; files in use are closed by their last user") {
  Table table;
  for (std::uint64_t file = 1; file <= RecentFiles::kMax + 1; ++file) table.components.forget(*table.make(file));
  CHECK(code_of(table.components.find(FileId(2))) == Code::kStaleFile);
  CHECK(code_of(table.components.find(FileId(1))) == Code::kNotFound);
  const auto used = table.make(1);
  const auto in_use = used->files;
  table.components.forget(*used);
  CHECK_FALSE(used->mode.has_value());
  CHECK(in_use->data->size().has_value());
  CHECK(in_use.use_count() == 1);
  const auto again = table.make(1);
  table.components.forget(*again, false);
  CHECK(code_of(table.components.find(FileId(1))) == Code::kStaleFile);  // as before
}

TEST_CASE("a component whose files cannot be made is not there, and leaves none") {
  Table table;
  for (const char* suffix : {".dat", ".sum"}) {
    table.disk->set_fault([suffix](std::string_view call, std::string_view path) {
      return call == "open" && path.ends_with(suffix) ? Code::kNoSpace : Code::kOk;
    });
    CHECK(code_of(table.components.create(table.shape(7), 1, Time{})) == Code::kNoSpace);
    table.disk->set_fault({});
    CHECK(code_of(table.components.find(FileId(7))) == Code::kNotFound);
    CHECK(table.disk->files("/lfs0/data").empty());
  }
}

TEST_CASE("a shape or layout that cannot be is refused, from a request and from the catalogue") {
  Table table;
  auto shape = table.shape(7);
  shape.mutable_layout()->add_bevies(3);
  CHECK(code_of(table.components.create(shape, 1, Time{})) == Code::kInvalid);
  shape.mutable_format()->set_kind(9);
  CHECK(code_of(table.components.create(shape, 1, Time{})) == Code::kInvalid);
  auto transaction = table.store->write().value();
  proto::ComponentState state;
  *state.mutable_shape() = shape;
  REQUIRE_OK(lfs::catalogue::put(*transaction, state));
  REQUIRE_OK(transaction->commit());
  transaction.reset();
  CHECK(code_of(table.components.find(FileId(7))) == Code::kInvalid);
}

TEST_CASE("files stay open where what they hold is known nowhere else, or somebody is at them") {
  Table table;
  const auto component = table.make(1);
  CHECK(Components::is_spare(*component));
  REQUIRE_OK(table.components.open_writer(*component));
  CHECK_FALSE(Components::is_spare(*component));
  auto state = component->state;
  state.set_state(kCommitted);
  table.components.set_state(*component, state);
  CHECK(Components::is_spare(*component));  // what its writer knows is in the catalogue
  component->dirty = true;
  CHECK_FALSE(Components::is_spare(*component));
  component->dirty = false;
  for (unsigned i = 0; i < kModes; ++i) {
    const auto mode = static_cast<Mode>(i);
    const auto held = component->lock.try_acquire(mode);
    const bool needs_none = mode == Mode::kInput || mode == Mode::kClose || mode == Mode::kNoteCommitted;
    CAPTURE(i);
    CHECK(Components::is_spare(*component) == needs_none);
  }
}

TEST_CASE("who waits for a component hears at once that it failed, or was removed") {
  Table table;
  for (const bool is_removed : {false, true}) {
    const auto component = table.make(is_removed ? 1 : 2);
    bool has_heard = false;
    table.fibers.start([&] { has_heard = component->changed.wait(); });
    table.fibers.run();
    CHECK_FALSE(has_heard);
    if (is_removed) table.components.forget(*component);
    if (!is_removed) table.components.set_failed(*component, {Code::kIo, "the disk", {}});
    table.fibers.run();
    CHECK(has_heard);
    CHECK_FALSE(component->is_whole());
    CHECK(code_of(check_there(*component)) == (is_removed ? Code::kStaleFile : Code::kIo));
  }
}

TEST_CASE("whoever waits for the lock of a component that goes meanwhile does not get it") {
  Table table;
  const auto component = table.make(1);
  auto held = component->lock.try_acquire(Mode::kKeepParity);
  std::optional<Code> code;
  table.fibers.start([&] { code = code_of(lock_component(table.fibers, *component, Mode::kAddParity, kNever)); });
  CHECK_FALSE(code);
  table.components.forget(*component);
  held.release();
  table.fibers.run();
  CHECK(code == Code::kStaleFile);
  CHECK(component->lock.is_free());
}
