#include "sim/spawner.h"

#include <csignal>

#include <fmt/format.h>

namespace pif::sim {

Result<lfs::Spawner::Started> SimSpawner::start(const Order& order) {
  const auto program = programs_.mains.find(order.program);
  if (program == programs_.mains.end())
    return fail(Code::kNotFound, fmt::format("cannot start {}: there is no such program", order.program));
  const bool lacks = !order.build.empty() && order.stored == nullptr && programs_.missing_at.contains(parent_.name());
  auto [ours, theirs] = world_.make_pair();
  auto code = std::make_shared<int>(0);
  auto end = std::make_shared<Handle>(std::move(theirs));
  const auto name = fmt::format("{}[{}.{}]", order.program, parent_.name(), running_.size() + world_.steps());
  const ActorId id = world_.spawn(
      name,
      [main = program->second, order, code, end, lacks](Actor& self) {
        *code = lacks ? 126 : main(self, order, std::move(*end));
      },
      Who{order.uid, order.gids}, parent_.id());
  if (lacks) lacking_.insert(static_cast<ProcessId>(id));
  running_.emplace(id, code);
  return Started{static_cast<ProcessId>(id), std::move(ours)};
}

void SimSpawner::kill(ProcessId process) {
  if (running_.contains(process)) world_.kill(static_cast<ActorId>(process));
}

std::optional<lfs::WorkerExit> SimSpawner::exited(ProcessId process) {
  const auto found = running_.find(process);
  const auto id = static_cast<ActorId>(process);
  if (found == running_.end() || world_.is_alive(id)) return std::nullopt;
  lfs::WorkerExit out;
  out.by_signal = world_.was_killed(id);
  out.value = out.by_signal ? SIGKILL : *found->second;
  running_.erase(found);
  return out;
}

}  // namespace pif::sim
