/* command: check */
/* variants: 3 */
/* The undo log once more, with classes, templates and std::atomic. */
#include "../pm.h"

#include <atomic>
#include <stdexcept>

template <typename T> class Logged {
	alignas(64) T value_;
	alignas(64) T old_;
	alignas(64) std::atomic<bool> valid_;

	static void persist(const void *p)
	{
		PERSIST(p);
	}

    public:
	void set(T value)
	{
		old_ = value_;
#if BUG != 1
		persist(&old_);
#endif
		valid_.store(true, std::memory_order_release);
		persist(&valid_);
		value_ = value;
#if BUG != 2
		persist(&value_);
#endif
		valid_.store(false, std::memory_order_release);
		persist(&valid_);
#if BUG == 1
		persist(&old_);
#elif BUG == 2
		persist(&value_);
#endif
	}

	void recover()
	{
		if (!valid_.load())
			return;
#if BUG != 3
		value_ = old_; /* expect-1: cross-failure-race */
		persist(&value_);
#endif
		valid_.store(false);
		persist(&valid_);
	}

	T get() const
	{
		return value_; /* expect-2: cross-failure-race */ /* expect-3: cross-failure-race */
	}
};

int main(int argc, char **argv)
{
	auto *logged = static_cast<Logged<uint64_t> *>(pm_map(argv));

	(void)argc;
	logged->recover();
	try {
		if (logged->get() > 1000)
			throw std::runtime_error("too large");
	} catch (const std::exception &) {
		return 1;
	}
	logged->set(logged->get() + 1);
	logged->set(logged->get() + 1);
	return 0;
}
