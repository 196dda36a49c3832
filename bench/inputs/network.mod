/* Goods from plants through depots to shops at least cost: a linear program that keeps the simplex method busy. */
param plants; param depots; param shops; param goods;
set P := 1..plants; set D := 1..depots; set S := 1..shops; set G := 1..goods;
param haul{p in P, d in D, g in G} := 5 + (p * 7919 + d * 104729 + g * 31) mod 97;
param drop{d in D, s in S, g in G} := 3 + (d * 6151 + s * 49157 + g * 17) mod 61;
param need{s in S, g in G} := 10 + (s * 389 + g * 769) mod 41;
param capacity{d in D} := 1.3 * sum{s in S, g in G} need[s, g] / depots + (d * 53) mod 29;
var x{P, D, G} >= 0;
var y{D, S, G} >= 0;
minimize cost: sum{p in P, d in D, g in G} haul[p, d, g] * x[p, d, g] + sum{d in D, s in S, g in G} drop[d, s, g] * y[d, s, g];
s.t. supply{p in P, g in G}: sum{d in D} x[p, d, g] <= 1.2 * sum{s in S} need[s, g] / plants;
s.t. flow{d in D, g in G}: sum{p in P} x[p, d, g] >= sum{s in S} y[d, s, g];
s.t. demand{s in S, g in G}: sum{d in D} y[d, s, g] >= need[s, g];
s.t. room{d in D}: sum{s in S, g in G} y[d, s, g] <= capacity[d];
solve;
printf "cost %.6f\n", cost;
data;
param plants := 8; param depots := 20; param shops := 150; param goods := 6;
end;
