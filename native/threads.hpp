// Threads for one run: started with the first work there is for them, ended with the run.
//
// Between two half-sweeps they spin for a moment before they sleep: waking a thread can take longer than
// half a half-sweep. They know nothing of Python. A run belongs to one Python thread at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <system_error>
#include <thread>
#include <vector>

namespace bemf {

class Threads {
  public:
    explicit Threads(int n) : n_(n) {}
    Threads(const Threads&) = delete;
    ~Threads() {
        ending_ = true;
        call();
        for (auto& thread : threads_) thread.join();
    }

    int size() const { return n_; }

    // Has every thread but the calling one do job(number of the thread).
    void start(std::function<void(int)> job) {
        job_ = std::move(job);
        if (threads_.empty()) begin();
        busy_ = int(threads_.size());
        call();
    }

    void wait() {
        while (busy_ > 0) std::this_thread::yield();
    }

  private:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::microseconds spinning{300};

    void begin() {
        threads_.reserve(n_ - 1);
        const uint32_t seen = round_;
        try {
            for (int number = 1; number < n_; ++number) threads_.emplace_back([this, number, seen] { live(number, seen); });
        } catch (const std::system_error&) {  // no more threads to be had: those that started do it all
        }
    }

    void call() {
        ++round_;
        round_.notify_all();
    }

    void live(int number, uint32_t seen) {
        for (;;) {
            const auto since = Clock::now();
            while (round_ == seen && Clock::now() - since < spinning) std::this_thread::yield();
            round_.wait(seen);
            seen = round_;
            if (ending_) return;
            job_(number);
            --busy_;
        }
    }

    int n_;
    std::vector<std::thread> threads_;
    std::function<void(int)> job_;
    std::atomic<uint32_t> round_{0};
    std::atomic<int> busy_{0};
    std::atomic<bool> ending_{false};
};

}  // namespace bemf
