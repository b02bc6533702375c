// The summary of a set of numbers, however many they are. Two sets' give those of both together, in bytes that depend
// on the order: whoever adds those of workers does it by rank. Values; any thread.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

namespace pif::summarize {

class Moments {
 public:
  void add(double x) {
    min_ = count_ == 0 ? x : std::min(min_, x);
    max_ = count_ == 0 ? x : std::max(max_, x);
    ++count_;
    add_to_sum(x);
    const double step = x - mean_;
    mean_ += step / static_cast<double>(count_);
    squares_ += step * (x - mean_);
  }
  // Chan, Golub, LeVeque 1979.
  void add(const Moments& other) {
    if (other.count_ == 0) return;
    if (count_ == 0) {
      *this = other;
      return;
    }
    const double all = static_cast<double>(count_ + other.count_), step = other.mean_ - mean_;
    squares_ += other.squares_ + step * step * static_cast<double>(count_) * static_cast<double>(other.count_) / all;
    mean_ += step * static_cast<double>(other.count_) / all;
    count_ += other.count_;
    min_ = std::min(min_, other.min_);
    max_ = std::max(max_, other.max_);
    add_to_sum(other.sum_);
    lost_ += other.lost_;
  }

  std::uint64_t count() const { return count_; }
  double min() const { return min_; }
  double max() const { return max_; }
  double sum() const { return sum_ + lost_; }
  double mean() const { return sum() / static_cast<double>(count_); }
  // The deviation of a sample; 0 for one number.
  double deviation() const { return count_ < 2 ? 0 : std::sqrt(squares_ / static_cast<double>(count_ - 1)); }

  // For messages.
  static constexpr std::size_t kNumbers = 7;
  std::array<std::uint64_t, kNumbers> numbers() const {
    const auto bits = [](double x) { return std::bit_cast<std::uint64_t>(x); };
    return {count_, bits(min_), bits(max_), bits(sum_), bits(lost_), bits(mean_), bits(squares_)};
  }
  static Moments of(std::span<const std::uint64_t, kNumbers> n) {
    const auto number = [](std::uint64_t bits) { return std::bit_cast<double>(bits); };
    Moments m;
    m.count_ = n[0];
    m.min_ = number(n[1]), m.max_ = number(n[2]), m.sum_ = number(n[3]);
    m.lost_ = number(n[4]), m.mean_ = number(n[5]), m.squares_ = number(n[6]);
    return m;
  }

 private:
  // Neumaier 1974: what a sum's last bits lose is summed apart.
  void add_to_sum(double x) {
    const double sum = sum_ + x;
    lost_ += std::abs(sum_) >= std::abs(x) ? (sum_ - sum) + x : (x - sum) + sum_;
    sum_ = sum;
  }

  std::uint64_t count_ = 0;
  double min_ = 0, max_ = 0;
  double sum_ = 0, lost_ = 0;
  double mean_ = 0, squares_ = 0;  // squares_: of distances from the mean, summed
};

}  // namespace pif::summarize
