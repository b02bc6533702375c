// Makes components durable before their seals are answered. Small ones that wait at the same time are synced together:
// from a certain number on by one sync of the whole local file system, which costs as much as a few syncs of single
// files. A large one is synced by itself, so that nobody waits for it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "context/lfs_context.h"

namespace pif::lfs {

class SealSync {
 public:
  explicit SealSync(LfsContext& context);

  // Each waits until these files are durable, or why not. Called by a fiber.
  // The component is locked as kSeal, with open files, and nobody writes it.
  [[nodiscard]] Status sync(const ComponentPtr& component);
  // The component's parity, of which so many bytes are new; is_new: and its own files.
  [[nodiscard]] Status sync_parity(const ComponentPtr& component, std::shared_ptr<component::ParityFiles> parity,
                                   std::uint64_t bytes, bool is_new);
  // Both files of one of many components that come back at the same time; parity may be null. So many bytes are new.
  // Nobody waits for this one alone, so that larger ones, too, are synced with others.
  [[nodiscard]] Status sync_restored(const ComponentPtr& component, std::shared_ptr<component::Files> files,
                                     std::shared_ptr<component::ParityFiles> parity, std::uint64_t bytes);

 private:
  // One sync that a fiber waits for, on its stack.
  struct Item {
    std::shared_ptr<component::Files> files;  // either may be null
    std::shared_ptr<component::ParityFiles> parity;
    std::string folder;
    Status result{};
    daemon::Fibers::WaitId wait{};

    [[nodiscard]] Status sync() const;
    [[nodiscard]] Status check_written() const;
  };
  using Batch = std::span<Item* const>;
  [[nodiscard]] Status sync(Item item, std::uint64_t bytes);
  // On a fiber of its own: batches of what waits.
  void serve();
  // Waits until a batch may begin.
  void wait_for_turn();
  void end_batch(const std::vector<Item*>& batch);  // on a fiber of its own
  void sync_batch(Batch batch);
  // Away from the loop. False: there is no sync of all.
  [[nodiscard]] bool sync_all(Batch batch) const;
  void sync_each(Batch batch) const;

  LfsContext& context_;
  std::vector<Item*> waiting_;
  daemon::Event news_;      // something waits
  daemon::Event ended_;     // a batch has ended
  unsigned under_way_ = 0;  // batches
  Time begun_{};            // the last one
  Time all_again_{};        // before that no sync of all: the last one took too long, for others write a lot
};

}  // namespace pif::lfs
