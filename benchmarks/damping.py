"""Experiment: many rules for μ on many problems."""

import argparse, json, os, sys, time
from functools import partial
import subprocess
import numpy as np


def rules():
    z = dict(
        c=0.0,
        p=1.0,
        d=1.0,
        dec=0.0,
        short=0.2,
        up=2.0,
        down=4.0,
        s0=1.0,
        gamma=0.1,
        low=-1e9,
        ac=0.0,
        ag=0.0,
        rej=1.0,
        kap=0.0,
        aref=0.35,
        fmin=0.1,
        fmax=100.0,
        pl=0.0,
        pd=0.0,
        g=0.0,
        kup=0.0,
        l0=0.0,
    )
    R = {}

    def add(name, **k):
        R[name] = {**z, **k}

    add("old", ac=1e-4)
    add("oldgeo", ag=1.0, up=8.0)
    add(
        "spec",
    )
    add("spec8", up=8.0)
    add("rel2c6", c=1e-6, p=2.0)
    add("rel2c8", c=1e-8, p=2.0)
    add("rel2c4", c=1e-4, p=2.0)
    add("rel2c6u8", c=1e-6, p=2.0, up=8.0)
    add("rel1c4", c=1e-4, p=1.0)
    add("rel1c6", c=1e-6, p=1.0)
    add("rel1c6u8", c=1e-6, p=1.0, up=8.0)
    add("dec2c6", c=1e-6, p=2.0, dec=1.0)
    add("dec1c6", c=1e-6, p=1.0, dec=1.0)
    add("geoc3", c=1e-3, p=0.0, d=1 / 3, up=8.0)
    add("geoc6", c=1e-6, p=0.0, d=1 / 3, up=8.0)
    eps = 2.2e-16
    B = dict(c=1e-6, p=2.0, up=8.0)
    add("rel2c6u4", **{**B, "up": 4.0})
    add("rel2c5u8", **{**B, "c": 1e-5})
    add("r6u8d2", **B, down=2.0)
    add("r6u8d8", **B, down=8.0)
    add("r6u8s1", **B, short=0.1)
    U = dict(c=1e-4, p=2.0, up=8.0)
    add("U1", **U, d=0.7)
    add("U2", **U, d=0.5)
    add("U4", **{**U, "up": 4.0}, d=0.5)
    add("geo4", c=1e-4, p=0.0, d=1 / 3, up=8.0)
    add("geo4u4", c=1e-4, p=0.0, d=1 / 3, up=4.0)
    add("dec2c4", **U, dec=1.0)
    add("dec2c3", **{**U, "c": 1e-3}, dec=1.0)
    add("D1", **U, dec=1.0, d=0.7)
    add("D2", **U, dec=1.0, d=0.5)
    add("D3", **{**U, "c": 1e-3}, dec=1.0, d=0.5)
    add("D5", **{**U, "c": 1e-3, "p": 1.0}, dec=1.0, d=0.5)
    V = dict(c=1e-4, p=2.0, d=0.5, kup=2.0)
    add("V1", **V)
    add("V2", **{**V, "d": 1 / 3})
    add("V3", **{**V, "d": 0.7})
    add("V4", **{**V, "d": 1.0, "c": 1e-6})
    add("V5", **{**V, "d": 0.7, "c": 1e-5})
    W = dict(c=1e-4, p=0.0, d=1 / 3, kup=2.0)
    add("W1", **W)
    add("W2", **{**W, "c": 1e-2})
    add("W3", **{**W, "c": 1e-2, "d": 0.25})
    add("W4", **{**W, "c": 1e-3})
    add("W5", **{**W, "c": 1e-5})
    N = dict(c=1e-4, p=2.0, d=1 / 3, up=8.0, l0=1.0)
    add("N1", **N)
    add("N2", **{**N, "d": 0.5})
    add("N3", **{**N, "d": 0.5, "c": 1e-3})
    add("N4", **{**N, "d": 0.7, "c": 1e-3})
    add("U2s1", **U, d=0.5, short=0.1)
    M = dict(p=0.0, d=1 / 3, up=8.0, l0=1.0)
    add("M1", **M, c=1e-2)
    add("M2", **M, c=1e-3)
    add("M3", **M, c=1e-4)
    add("M4", **M, c=1e-1)
    A = dict(s0=1e-4 / (0.1 * eps), kap=2.0)
    add("A1", **A)
    add("A2", **{**A, "s0": 1e-6 / (0.1 * eps)})
    add("A3", **{**A, "kap": 1.0})
    add("A4", **{**A, "kap": 3.0, "fmin": 0.03})
    add("A5", **A, pl=1.0)
    add("A6", **A, pd=1.0)
    add("A7", **A, pd=2.0)
    add("A8", **A, aref=0.25)
    add("A9", **A, aref=0.5)
    add("A10", **{**A, "s0": 1e-2 / (0.1 * eps)})
    add("A11", **{**A, "fmin": 0.01})
    add("B1", **A, g=1.0)
    add("B2", **A, g=0.5)
    add("lm4", s0=1e-4 / (0.1 * eps), up=8.0, down=4.0)
    add("lm4d10", s0=1e-4 / (0.1 * eps), up=8.0, down=10.0)
    add("lm8d4u4", s0=1e-8 / (0.1 * eps), up=4.0, down=4.0)
    return R


def build(case, seed):
    import jax, jax.numpy as jnp, natgrad as ng
    from natgrad import zoo

    key = jax.random.key(seed)
    name, _, preset = case.partition(":")
    if name in zoo.names():
        b = zoo.get(name)
        pre = b.preset(preset)
        return b.problem(key, preset), dict(pre.solver), b.norm
    k = jax.random.split(key, 6)
    if name == "poissonu":  # u times a factor
        width, depth, n, m, rank, factor = {"s": (32, 2, 1500, 600, 300), "p": (64, 3, 10000, 1000, None)}[
            preset[0]
        ] + (float(preset[1:]),)
        cube = ng.Box([0, 0, 0], [1, 1, 1])
        exact = lambda x: factor * jnp.prod(jnp.sin(jnp.pi * x))
        prob = ng.LeastSquares(
            ng.MLP(3, 1, width, depth, key=k[0]),
            pde=ng.Residual(lambda u, x: ng.laplacian(u, x) + 3 * jnp.pi**2 * exact(x), cube.interior(n, key=k[1])),
            boundary=ng.Residual(lambda u, x: u(x) - exact(x), cube.boundary(m, key=k[2])),
            exact=exact,
        )
        return prob, ({"max_rank": rank} if rank else {}), "h1"
    if name == "helmholtz":
        w = float(preset.split(",")[0])
        n, m, width, depth, rank = (10000, 800, 64, 3, None)
        sq = ng.Box([0, 0], [1, 1])
        a = w * jnp.pi
        exact = lambda x: jnp.sin(a * x[0]) * jnp.sin(a * x[1])
        prob = ng.LeastSquares(
            ng.MLP(2, 1, width, depth, key=k[0]),
            pde=ng.Residual(
                lambda u, x: ng.laplacian(u, x) + u(x) + (2 * a**2 - 1) * exact(x), sq.interior(n, key=k[1])
            ),
            boundary=ng.Residual(lambda u, x: u(x), sq.boundary(m, key=k[2]), weight=100),
            exact=exact,
        )
        return prob, {}, "l2"
    if name == "shock":
        from natgrad.zoo.burgers import layered, NU, DOMAIN
        from natgrad.zoo import _reference
        from natgrad.calculus import value_gradient_laplacian

        net = ng.HardBoundary(
            ng.MLP(2, 1, 64, 3, key=k[0]),
            distance=lambda z: z[0] * (1 - z[1] ** 2),
            lift=lambda z: -jnp.sin(jnp.pi * z[1]),
        )

        def burgers(u, z):
            value, (u_t, u_x), u_xx = value_gradient_laplacian(u, z, dims=1)
            return u_t + value * u_x - NU * u_xx

        prob = ng.LeastSquares(
            net,
            pde=ng.Residual(burgers, layered(10500, k[1])),
            exact=_reference.burgers(NU),
            evaluation=layered(50000, jax.random.key(1), "monte-carlo"),
        )
        return prob, {}, "l2"
    T = ng.Interval(0, 1)

    def periodic(width, depth, per):
        return ng.Periodic(ng.MLP(3, 1, width, depth, key=k[0]), periods=per)

    if name == "advection":
        c = float(preset)
        D = T * ng.Box(0, 2 * float(np.pi))
        exact = lambda z: jnp.sin(z[1] - c * z[0])
        net = ng.Apply(None, None) if False else ng.MLP(3, 1, 64, 3, key=k[0])
        wrap = lambda u: lambda z: u(jnp.stack([z[0], jnp.cos(z[1]), jnp.sin(z[1])]))

        def pde(u, z):
            g = ng.gradient(wrap(u), z)
            return g[0] + c * g[1]

        prob = ng.LeastSquares(
            net,
            pde=ng.Residual(pde, D.interior(10000, key=k[1])),
            initial=ng.Residual(lambda u, z: wrap(u)(z) - jnp.sin(z[1]), D.initial(500, key=k[2]), weight=100),
        )
        x = D.interior(20000, key=jax.random.key(77))
        return prob, {}, (lambda u: None)
    if name == "wave":
        D = T * ng.Box(0, 1)
        f = lambda z: (
            jnp.sin(jnp.pi * z[1]) * jnp.cos(2 * jnp.pi * z[0])
            + 0.5 * jnp.sin(4 * jnp.pi * z[1]) * jnp.cos(8 * jnp.pi * z[0])
        )
        prob = ng.LeastSquares(
            ng.MLP(2, 1, 64, 3, key=k[0]),
            pde=ng.Residual(
                lambda u, z: ng.partial(u, z, 0, 0) - 4 * ng.partial(u, z, 1, 1), D.interior(10000, key=k[1])
            ),
            boundary=ng.Residual(lambda u, z: u(z), D.boundary(500, key=k[2]), weight=100),
            initial=ng.Residual(
                lambda u, z: jnp.stack([u(z) - f(z), 0.1 * ng.gradient(u, z)[0]]), D.initial(500, key=k[3]), weight=100
            ),
            exact=f,
        )
        return prob, {}, "l2"
    raise SystemExit(f"unknown {case}")


def worker(case, seed, names, steps, every, path):
    import jax, jax.numpy as jnp, equinox as eqx

    jax.config.update("jax_enable_x64", True)
    import natgrad as ng
    from natgrad.optim import damping as D
    from natgrad.stepping import compiler_options

    class Meta(D.Damping):
        c: jax.Array
        p: jax.Array
        d: jax.Array
        dec: jax.Array
        short: jax.Array
        up: jax.Array
        down: jax.Array
        s0: jax.Array
        gamma: jax.Array
        low: jax.Array
        ac: jax.Array
        ag: jax.Array
        rej: jax.Array
        kap: jax.Array
        aref: jax.Array
        fmin: jax.Array
        fmax: jax.Array
        pl: jax.Array
        pd: jax.Array
        g: jax.Array
        kup: jax.Array
        l0: jax.Array

        def init(self, dtype):
            return dict(
                s=jnp.asarray(self.s0),
                first=jnp.asarray(1.0),
                firstdec=jnp.asarray(1.0),
                lastdec=jnp.asarray(1.0),
                lam=jnp.asarray(1.0),
            )

        def extra(self, st, seen): ...

        def mu(self, st, seen):
            start = seen.iteration == 0
            ratio = jnp.where(
                start, 1.0, jnp.where(self.dec > 0, st["lastdec"] / st["firstdec"], seen.loss / st["first"])
            )
            base = (
                self.c * jnp.maximum(ratio, 0.0) ** self.p * self.d**seen.iteration
                + (self.ac * seen.loss**2 + self.ag * 3.0**-seen.iteration) / seen.largest
            )
            base = base * jnp.where((self.l0 > 0) & ~start, st["lam"] / seen.largest, 1.0)
            base = jnp.maximum(self.gamma * 2.2e-16, base)
            return jnp.minimum(st["s"] * base, 1.0) * seen.largest

        def update(self, st, told):
            start = st["first"] == 1.0
            bad = (told.step < self.short) | (told.gain < self.low)
            up = jnp.where(
                self.kup > 0, jnp.minimum((self.aref / jnp.maximum(told.step, 1e-3)) ** self.kup, 1e3), self.up
            )
            s = jnp.maximum(1.0, st["s"] * jnp.where(bad, up, 1 / self.down))
            a = told.step * jnp.clip(told.gain, 0.0, 1.0) ** self.g
            good = jnp.where(told.step >= 0.5, 1.0, 0.0)
            f = (self.aref / jnp.maximum(a, 1e-3)) ** self.kap * jnp.clip(
                1 + told.change / jnp.abs(told.loss), 1e-2, 1.0
            ) ** (self.pl * good)
            f = f * jnp.where(start, 1.0, jnp.clip(told.slope / st["lastdec"], 1e-2, 1.0) ** (self.pd * good))
            f = jnp.clip(f, self.fmin ** jnp.where(self.pl + self.pd > 0, 2.0, 1.0), self.fmax)
            s = jnp.where(self.kap > 0, jnp.maximum(1.0, st["s"] * jnp.where(told.step == 0, self.fmax, f)), s)
            return dict(
                s=jnp.minimum(s, 1e17),
                first=jnp.where(start, told.loss, st["first"]),
                firstdec=jnp.where(start, told.slope, st["firstdec"]),
                lastdec=told.slope,
                lam=jnp.where(start, told.largest, st["lam"]),
            )

        def guard(self, st):
            return st["s"]

    problem, options, norm = build(case, seed)
    R = rules()
    base = ng.NystromNGD(**options)
    arr = lambda r: Meta(**{k: jnp.asarray(float(v)) for k, v in r.items()})
    from natgrad.optim.memory import fit

    base = fit(base, problem)
    static = None
    solver0 = eqx.tree_at(lambda s: s.damping, base, arr(R[names[0]]))
    step = jax.jit(
        lambda meta, problem, params, state: eqx.tree_at(lambda s: s.damping, base, meta).step(problem, params, state)
    )
    ev = jax.jit(lambda problem, params: problem.errors(params))
    t = time.time()
    state0 = solver0.init(problem, problem.params, jax.random.fold_in(jax.random.key(seed), 7))
    compiled = step.lower(solver0.damping, problem, problem.params, state0).compile(compiler_options())
    tc = time.time() - t
    for name in names:
        meta = arr(R[name])
        params = problem.params
        state = {**state0.damping, "s": meta.s0}
        state = eqx.tree_at(lambda s: s.damping, state0, state)
        errs, al, mus, los, gu, cg = [], [], [], [], [], []
        t = time.time()
        for i in range(1, steps + 1):
            params, state, info = compiled(meta, problem, params, state)
            al.append(float(info.step_size))
            mus.append(float(info.mu / info.largest))
            los.append(float(info.loss))
            gu.append(float(info.guard))
            cg.append(int(info.inner_iterations))
            if i % every == 0 or i == steps:
                e = ev(problem, params)
                errs.append(float(e[norm]) if norm in e else None)
            if not np.isfinite(los[-1]):
                break
        with open(path, "a") as f:
            f.write(
                json.dumps(
                    dict(
                        case=case,
                        seed=seed,
                        rule=name,
                        every=every,
                        steps=steps,
                        errors=errs,
                        alpha=al,
                        mu=mus,
                        loss=los,
                        guard=gu,
                        cg=cg,
                        time=time.time() - t,
                        compile=tc,
                    )
                )
                + "\n"
            )
    print(case, seed, "done", f"{tc:.1f}", flush=True)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--cases")
    a.add_argument("--seeds", default="0")
    a.add_argument("--rules", default="all")
    a.add_argument("--steps", type=int, default=60)
    a.add_argument("--every", type=int, default=5)
    a.add_argument("--jobs", type=int, default=1)
    a.add_argument("--out")
    a.add_argument("--worker", action="store_true")
    o = a.parse_args()
    names = list(rules()) if o.rules == "all" else o.rules.split(",")
    cases = []
    for c in o.cases.split(";"):
        c, _, st = c.partition("@")
        for s in o.seeds.split(","):
            cases.append((c, int(s), int(st or o.steps)))
    if o.worker:
        ((c, s, st),) = cases
        return worker(c, s, names, st, o.every, o.out)
    running = []
    env = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    if os.environ.get("JAX_PLATFORMS") == "cpu":
        env["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    todo = list(cases)
    t0 = time.time()
    while todo or running:
        running = [p for p in running if p.poll() is None]
        while todo and len(running) < o.jobs:
            c, s, st = todo.pop(0)
            running.append(
                subprocess.Popen(
                    [
                        sys.executable,
                        "-m",
                        "benchmarks.damping",
                        "--worker",
                        "--cases",
                        f"{c}@{st}",
                        "--seeds",
                        str(s),
                        "--rules",
                        ",".join(names),
                        "--every",
                        str(o.every),
                        "--out",
                        o.out,
                    ],
                    env=env,
                )
            )
        time.sleep(0.2)
    print("all done", time.time() - t0)


if __name__ == "__main__":
    main()
